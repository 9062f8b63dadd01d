/**
 * A cookie's value: the first of its name, unquoted and percent-decoded, as the parsers of the
 * frameworks do, so that another spelling of one session does not buy a fresh budget.
 */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=')
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
    const value = pair.slice(equals + 1).trim()
    return decoded(value.startsWith('"') && value.endsWith('"') && value.length > 1 ? value.slice(1, -1) : value)
  }
  return undefined
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
