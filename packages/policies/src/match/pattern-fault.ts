/** Most segments of a pattern. */
const MOST_SEGMENTS = 32

/** What a pattern may not be; undefined for one that is well. */
export function patternFault(pattern: string): string | undefined {
  const segments = pattern.split('/').slice(1)
  if (segments.length > MOST_SEGMENTS) return `expected at most ${MOST_SEGMENTS} segments`
  const rest = segments.indexOf('**')
  if (rest >= 0 && rest !== segments.length - 1) return 'expected ** as the last segment alone'
  for (const segment of segments) {
    if (segment === '*' || segment === '**' || /^:[A-Za-z0-9_]{1,64}$/.test(segment)) continue
    if (segment.includes('*') || segment.startsWith(':')) return `expected *, ** or :name as a whole segment`
    if (segment.includes('?') || segment.includes('#')) return 'expected a path without a query'
  }
  return undefined
}
