/** Whether a client would rather have JSON than plain text (RFC 9110 §12.5.1); with no preference it gets JSON. */
export function prefersJson(accept: string | undefined): boolean {
  if (!accept || accept === '*/*') return true
  const ranges = new Map(accept.split(',').map(parseRange))
  const json = Math.max(quality(ranges, 'application/problem+json'), quality(ranges, 'application/json'))
  return json > 0 && json >= quality(ranges, 'text/plain')
}

function parseRange(text: string): [range: string, quality: number] {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const q = parameters.find((parameter) => parameter.startsWith('q='))
  return [range, q === undefined ? 1 : Number(q.slice(2)) || 0]
}

/** The most specific range that names a type decides. */
function quality(ranges: ReadonlyMap<string, number>, type: string): number {
  return ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0
}
