export type Json = Readonly<Record<string, unknown>>

/** The object that a line is. Undefined for anything else. */
export function objectOf(line: string): Json | undefined {
  if (line.charCodeAt(0) !== BRACE && line.trimStart()[0] !== '{') return undefined
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

const BRACE = 123

/** The names in a path: of `.request.headers.Host` three. */
const paths = new Map<string, readonly string[]>()

/** A value by its path. */
export function valueAt(json: Json, path: string): unknown {
  let names = paths.get(path)
  if (names === undefined) {
    names = path.replace(/^\./, '').split('.')
    if (paths.size < 100) paths.set(path, names)
  }
  let value: unknown = json
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Json)[name]
  }
  return value
}

/** A value by its path, as text. */
export function textAt(json: Json, path: string | undefined): string | undefined {
  return path === undefined ? undefined : textOf(valueAt(json, path))
}

/** Undefined for what stands for nothing: an empty text, `-`, and what Caddy hides. */
export function textOf(value: unknown): string | undefined {
  // Headers may come several times.
  if (Array.isArray(value))
    return value.length === 0 ? undefined : textOf(value.length === 1 ? value[0] : value.join(', '))
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  return typeof value === 'string' && !ABSENT.has(value) ? value : undefined
}

const ABSENT = new Set(['', '-', 'REDACTED'])
