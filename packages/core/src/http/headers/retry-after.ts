import { type HeaderField, type Present, retryAfterSeconds } from './writer.js'

/** `Retry-After`, unless what is there already asks for as long a wait: it is only ever raised. */
export function retryAfter(retryAfterMs: number, present: Present, out: HeaderField[]): void {
  const wait = retryAfterSeconds(retryAfterMs)
  const there = present.getResponseHeader('retry-after')
  if (there !== undefined && presentSeconds(there) >= wait) return
  out.push(['Retry-After', String(wait)])
}

/** RFC 9110 §10.2.3: seconds or a date. */
function presentSeconds(value: string): number {
  return /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
}
