import { RequestFault } from '../../util/request-fault.js'
import { MAX_PIECES, pathPieces, tooMany } from './path-pieces.js'

/**
 * Returns one spelling for all paths that may reach one handler with the same parameters. It is decoded and in lower case, has
 * single slashes and none at the end, and no path parameters (RFC 3986, 3.3) or dot segments. Routers differ in which of these
 * they distinguish, and do not show their settings.
 *
 * @throws RequestFault where routers may read the rest differently
 */
export function foldedPath(path: string): string {
  // Nearly every path has this form already.
  if (/^(\/[a-z0-9_~-][a-z0-9_~.-]*)+$/.test(path)) return path
  const segments: string[] = []
  let inParameter = false
  let isOdd = false
  let climbs = false
  for (const { text, end, endsSegment } of pathPieces(path)) {
    // Some routers read the next piece as a segment below, others as a part of the parameter.
    if (inParameter && !endsSegment && end !== ';') throw ambiguous()
    isOdd ||= !endsSegment || (text === '' && end !== '')
    climbs ||= text === '..'
    if (!inParameter) {
      if (text === '..') segments.pop()
      else if (text !== '' && text !== '.') segments.push(text)
    }
    inParameter = end === ';'
  }
  // Which segment a `..` takes away depends on what counts as a segment, and on what counts as `..`.
  if (climbs && (isOdd || /%2e/i.test(path))) throw ambiguous()
  // The result is encoded again, so that it is its own spelling.
  const parts = segments.join('/').split('%', MAX_PIECES + 1)
  if (parts.length > MAX_PIECES) throw tooMany(`${MAX_PIECES} pieces`)
  return `/${parts.join('%25')}`
}

function ambiguous(): RequestFault {
  return new RequestFault('unreadable path', 'byPath: expected a path that every router reads in one way')
}
