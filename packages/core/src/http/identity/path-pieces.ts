import { percentDecoded } from '../../util/percent.js'
import { RequestFault } from '../../util/request-fault.js'

/** A part of a path up to the next character at which some router, container or proxy splits paths. */
export interface PathPiece {
  /** In lower case and decoded. Invalid UTF-8 stays as sent: routers refuse it, or take it unchanged. */
  readonly text: string
  /** The character that ends it, decoded: `/`, `\`, `;` or, at the end of the path, none. */
  readonly end: string
  /** Whether all of them end the segment there: at a plain slash, or the end. */
  readonly endsSegment: boolean
}

/** Maximum of pieces of a path: each may be read in several ways. */
export const MAX_PIECES = 128
/** Maximum of characters: what Node accepts over HTTP/1 by default. Decoding four times as many, over HTTP/2, takes a millisecond. */
const MAX_LENGTH = 16_384
const SEPARATOR = /[/\\;]|%2f|%5c|%3b/gi
const NO_BREAK_SPACE = 160

/**
 * The pieces of a path that can be read in several ways.
 *
 * @throws RequestFault for more than 128 of them or 16,384 characters, or where frameworks derive different paths from the target
 */
export function pathPieces(path: string): readonly PathPiece[] {
  if (path.length > MAX_LENGTH) throw tooMany('16,384 characters')
  // Fastify turns `*`, which `OPTIONS` may request, into the root. Express takes `//user@host` for a host in some targets, also
  // where it follows the path that a router is mounted on: there a backslash is enough, as Express puts a slash before it.
  const isPath = path === '*' || (path.charCodeAt(0) === SLASH && !/(?:[/\\]\/|\\)[^/\\]*@/.test(path))
  if (!isPath) throw new RequestFault('unreadable path', 'expected a path that every framework takes for the same one')
  const text = path.slice(0, lengthOf(path))
  const pieces: PathPiece[] = []
  let start = 1
  SEPARATOR.lastIndex = 1
  for (let found = SEPARATOR.exec(text); found; found = SEPARATOR.exec(text)) {
    const [separator] = found
    if (pieces.length === MAX_PIECES - 1) throw tooMany(`${MAX_PIECES} pieces`)
    const end = separator.length > 1 ? decodeURIComponent(separator) : separator
    pieces.push({ text: folded(text.slice(start, found.index)), end, endsSegment: separator === '/' })
    start = SEPARATOR.lastIndex
  }
  pieces.push({ text: folded(text.slice(start)), end: '', endsSegment: true })
  return pieces
}

/** The fault of a path beyond a bound. It is not read in part: the significant segment may come after the bound. */
export function tooMany(max: string): RequestFault {
  return new RequestFault('unreadable path', `expected a path of at most ${max}`)
}

/** A segment, decoded and in lower case. */
export function folded(segment: string): string {
  return ((segment.includes('%') && percentDecoded(segment)) || segment).toLowerCase()
}

/** Express and Koa cut no-break spaces off the end of some targets. */
function lengthOf(path: string): number {
  let length = path.length
  while (path.charCodeAt(length - 1) === NO_BREAK_SPACE) length--
  return length
}

/** Characters that some routers read differently, and slashes that no segment follows. */
const ODD = /[^/a-z0-9_~-]|\/(?=\/|$)/
const SLASH = 47

/** Whether a path can be read in only one way, as nearly every path: segments with single slashes between them. */
export function isPlain(path: string): boolean {
  return path.charCodeAt(0) === SLASH && !ODD.test(path)
}
