import type { HeaderField, Present } from './writer.js'

const CONTROL = 'cache-control'

/**
 * The fields by which caches store a response, in lower case, and those that forbid it. Caches that know a field beside
 * `Cache-Control`, of RFC 9213 or of a product, follow it alone.
 */
const FORBIDDING: ReadonlyMap<string, HeaderField> = new Map([
  [CONTROL, ['Cache-Control', 'no-store']],
  ['cdn-cache-control', ['CDN-Cache-Control', 'no-store']],
  ['cloudflare-cdn-cache-control', ['Cloudflare-CDN-Cache-Control', 'no-store']],
  ['netlify-cdn-cache-control', ['Netlify-CDN-Cache-Control', 'no-store']],
  ['vercel-cdn-cache-control', ['Vercel-CDN-Cache-Control', 'no-store']],
  ['surrogate-control', ['Surrogate-Control', 'no-store']],
  ['edge-control', ['Edge-Control', 'no-store']],
  ['x-accel-expires', ['X-Accel-Expires', '0']],
])

/**
 * The fields of a response in place of the handler's, such that no shared cache stores it: other clients would get it. A
 * `Cache-Control` among `fields` is sent if it forbids that too.
 *
 * @param keeps whether that also holds for one that the response already has
 */
export function unstored(fields: readonly HeaderField[], present: Present, keeps = false): HeaderField[] {
  const names = fields.map(([name]) => name.toLowerCase())
  const sent: HeaderField[] = []
  for (const [name, forbidding] of FORBIDDING) {
    if (names.includes(name)) continue
    const there = present.getResponseHeader(name)
    const isHarmless = name === CONTROL ? keeps && isUnshared(there) : there === undefined
    if (!isHarmless) sent.push(forbidding)
  }
  fields.forEach((field, i) => {
    const [name, value] = field
    const forbidding = FORBIDDING.get(names[i] as string)
    const isHarmless = !forbidding || (names[i] === CONTROL && isUnshared(value))
    sent.push(isHarmless ? field : [name, forbidding[1]])
  })
  return sent
}

/** Whether a `Cache-Control` forbids shared caches to store a response (RFC 9111 §5.2.2). */
function isUnshared(control: string | undefined): boolean {
  const bare = control?.replace(/"[^"\\]*"/g, '')
  // A quotation mark that is left may quote any of the directives.
  if (bare === undefined || bare.includes('"')) return false
  const directives = bare.split(',').map((directive) => directive.trim().toLowerCase())
  if (directives.includes('private')) return true
  // Caches that understand the status ignore `no-store` beside `must-understand`.
  return directives.includes('no-store') && !directives.includes('must-understand')
}
