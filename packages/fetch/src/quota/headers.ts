/** Headers of any client: of `fetch`, or a plain object as of `node:http` and axios, with names in any case. */
export type HeadersLike =
  | { forEach(each: (value: string, name: string) => void): void }
  | { readonly [name: string]: unknown }

/** A longer value is no header of a quota. */
const MAX_LENGTH = 8192

/** The headers by their names in lower case. Of a repeated one, the values are joined by a comma, as `fetch` joins them. */
export function headersOf(headers: HeadersLike): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const add = (value: unknown, name: unknown) => {
    const text = Array.isArray(value) ? value.filter(isText).join(', ') : isText(value) ? String(value) : ''
    if (isText(name) && text !== '' && text.length <= MAX_LENGTH) found.set(String(name).toLowerCase(), text.trim())
  }
  try {
    if (Array.isArray(headers)) byName(headers).forEach(add)
    else if (typeof headers.forEach === 'function') headers.forEach(add)
    else for (const [name, value] of Object.entries(headers)) add(value, name)
  } catch {
    // Headers that cannot be read tell nothing.
  }
  return found
}

function isText(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}

function byName(raw: readonly unknown[]): Map<string, unknown[]> {
  const values = new Map<string, unknown[]>()
  for (const [given, value] of rawPairs(raw)) {
    if (!isText(given)) continue
    const name = String(given).toLowerCase()
    values.set(name, [...(values.get(name) ?? []), value])
  }
  return values
}

/** The names and values of raw headers, which have them in turns or as pairs. */
export function* rawPairs(raw: readonly unknown[]): Generator<readonly [name: unknown, value: unknown]> {
  if (raw.every(Array.isArray)) yield* raw as unknown as readonly [unknown, unknown][]
  else for (let i = 0; i + 1 < raw.length; i += 2) yield [raw[i], raw[i + 1]]
}
