/**
 * One spelling of the paths that may reach one handler: in lower case, with single slashes and none at the end, and without
 * percent-encoding of characters that need none (RFC 3986, 6.2.2). Routers differ in which of these they distinguish, and do
 * not show how they are set.
 */
export function foldedPath(path: string): string {
  // Nearly every path is written so.
  if (/^(\/[a-z0-9_~.-]+)+$/.test(path)) return path
  const decoded = path.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return /[a-z0-9_~.-]/i.test(character) ? character : encoded
  })
  const folded = decoded.toLowerCase().replace(/\/{2,}/g, '/')
  return folded.length > 1 && folded.endsWith('/') ? folded.slice(0, -1) : folded
}
