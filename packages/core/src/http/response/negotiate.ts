/**
 * Bounds of the part of a client's preference list that is read. The list may be as long as the server's limit for headers,
 * and a refusal must not cost more for it.
 */
const MAX_CHARACTERS = 1000
const MAX_ENTRIES = 32

/** Whether a client prefers JSON to plain text (RFC 9110 §12.5.1); without a preference it gets JSON. */
export function prefersJson(accept: string | undefined): boolean {
  if (!accept || accept === '*/*') return true
  const ranges = preferences(accept)
  const json = Math.max(quality(ranges, 'application/problem+json'), quality(ranges, 'application/json'))
  return json > 0 && json >= quality(ranges, 'text/plain')
}

/** The entries of a list with their qualities, within the bounds. */
function preferences(list: string): ReadonlyMap<string, number> {
  const read = list.length > MAX_CHARACTERS ? list.slice(0, list.lastIndexOf(',', MAX_CHARACTERS) + 1) : list
  return new Map(read.split(',', MAX_ENTRIES).map(parseEntry))
}

function parseEntry(text: string): [entry: string, quality: number] {
  const [entry = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const q = parameters.find((parameter) => parameter.startsWith('q='))
  return [entry, q === undefined ? 1 : Number(q.slice(2)) || 0]
}

/** The quality of a type: the most specific range that names it decides. */
function quality(ranges: ReadonlyMap<string, number>, type: string): number {
  return ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0
}
