/** Headers of any client: of `fetch`, or a plain object as of `node:http` and axios, with names in any case. */
export type HeadersLike =
  | { forEach(each: (value: string, name: string) => void): void }
  | { readonly [name: string]: unknown }

/** A longer value is no header of a quota. */
const MAX_LENGTH = 8192

/** The headers by their names in lower case. Of a repeated one, the values are joined by a comma, as `fetch` joins them. */
export function headersOf(headers: HeadersLike): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const add = (value: unknown, name: string) => {
    const text = Array.isArray(value) ? value.join(', ') : String(value ?? '')
    if (text !== '' && text.length <= MAX_LENGTH) found.set(name.toLowerCase(), text.trim())
  }
  if (typeof headers.forEach === 'function') headers.forEach(add)
  else for (const [name, value] of Object.entries(headers)) add(value, name)
  return found
}
