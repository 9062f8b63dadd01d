/**
 * A client's list of preferences is read this far and no further: it may be as long as the server lets headers be, and a
 * refusal must not cost more for it.
 */
const MOST_CHARACTERS = 1000
const MOST_ENTRIES = 32

/** Whether a client would rather have JSON than plain text (RFC 9110 §12.5.1); with no preference it gets JSON. */
export function prefersJson(accept: string | undefined): boolean {
  if (!accept || accept === '*/*') return true
  const ranges = preferences(accept)
  const json = Math.max(quality(ranges, 'application/problem+json'), quality(ranges, 'application/json'))
  return json > 0 && json >= quality(ranges, 'text/plain')
}

/** The entries of a list by their qualities, as far as it is read. */
function preferences(list: string): ReadonlyMap<string, number> {
  const read = list.length > MOST_CHARACTERS ? list.slice(0, list.lastIndexOf(',', MOST_CHARACTERS) + 1) : list
  return new Map(read.split(',', MOST_ENTRIES).map(parseEntry))
}

function parseEntry(text: string): [entry: string, quality: number] {
  const [entry = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const q = parameters.find((parameter) => parameter.startsWith('q='))
  return [entry, q === undefined ? 1 : Number(q.slice(2)) || 0]
}

/** The most specific range that names a type decides. */
function quality(ranges: ReadonlyMap<string, number>, type: string): number {
  return ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0
}
