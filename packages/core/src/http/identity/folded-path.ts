import { RequestFault } from '../../util/request-fault.js'
import { MAX_PIECES, pathPieces, tooMany } from './path-pieces.js'

/**
 * One spelling of the paths that may reach one handler with the same parameters: decoded, in lower case, with single slashes and none
 * at the end, without path parameters (RFC 3986, 3.3) and dot segments. Routers differ in which of these they distinguish, and
 * do not show how they are set.
 *
 * @throws RequestFault where they would not agree on what is left
 */
export function foldedPath(path: string): string {
  // Nearly every path is written so.
  if (/^(\/[a-z0-9_~-][a-z0-9_~.-]*)+$/.test(path)) return path
  const kept: string[] = []
  let inParameter = false
  let isOdd = false
  let climbs = false
  for (const { text, end, endsSegment } of pathPieces(path)) {
    // What follows is below the segment to some, and of its parameter to others.
    if (inParameter && !endsSegment && end !== ';') throw ambiguous()
    isOdd ||= !endsSegment || (text === '' && end !== '')
    climbs ||= text === '..'
    if (!inParameter) {
      if (text === '..') kept.pop()
      else if (text !== '' && text !== '.') kept.push(text)
    }
    inParameter = end === ';'
  }
  // Which segment a `..` takes away depends on what counts as a segment, and on what counts as `..`.
  if (climbs && (isOdd || /%2e/i.test(path))) throw ambiguous()
  // Encoded again, so that it is its own spelling.
  const parts = kept.join('/').split('%', MAX_PIECES + 1)
  if (parts.length > MAX_PIECES) throw tooMany(`${MAX_PIECES} pieces`)
  return `/${parts.join('%25')}`
}

function ambiguous(): RequestFault {
  return new RequestFault('unreadable path', 'byPath: expected a path that every router reads in one way')
}
