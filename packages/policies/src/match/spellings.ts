/** A path as its segments, in one spelling: in lower case and decoded. */
export type Segments = readonly string[]

/**
 * Every way in which a router may read a path: some distinguish `/a//b`, `/A/b`, `/a/b/` and `/%61/b` from `/a/b`, some do not, and none
 * shows how it is set. One for nearly every path; more where an empty segment, an encoded slash, a semicolon or a dot segment is
 * read in two ways. A policy is for a path if it is for any of them.
 */
export function spellingsOf(path: string): readonly Segments[] {
  const plain = plainSegments(path)
  if (plain) return [plain]
  // Fastify takes the first character for the slash, whatever it is.
  if (!path.startsWith('/')) return [`/${path}`, `/${path.slice(1)}`].flatMap(spellingsOf)
  const all = withAndWithoutEmpty(decodedSegments(path))
  const given = all[0] as Segments
  if (given.some((segment) => /[/\\]/.test(segment)))
    all.push(given.flatMap((each) => each.split(/[/\\]/)).filter(isSegment))
  // What follows is a query to routers that are set so.
  const cut = path.search(/;|%3b/i)
  if (cut >= 0) all.push(...withAndWithoutEmpty(decodedSegments(path.slice(0, cut))))
  return all.flatMap((segments) => (segments.some(isDots) ? [segments, withoutDots(segments)] : [segments]))
}

/** Characters, by their codes, that every router reads in the same way. */
const PLAIN = Uint8Array.from({ length: 128 }, (_, code) => (/[a-z0-9_~-]/.test(String.fromCharCode(code)) ? 1 : 0))
const SLASH = 47

/** The segments of a path that can be read in one way, as nearly every one can; undefined for the others. */
export function plainSegments(path: string): Segments | undefined {
  if (path.charCodeAt(0) !== SLASH) return undefined
  const segments: string[] = []
  let start = 1
  for (let i = 1; i <= path.length; i++) {
    if (i < path.length && path.charCodeAt(i) !== SLASH) {
      if (PLAIN[path.charCodeAt(i)] !== 1) return undefined
    } else if (i === start) return undefined
    else {
      segments.push(path.slice(start, i))
      start = i + 1
    }
  }
  return segments
}

function decodedSegments(path: string): string[] {
  return path.split('/').slice(1).map(foldedSegment)
}

/**
 * Routers drop empty segments, or take one for the value of a parameter: to Fastify `/users//x` and `/users/` are of
 * `/users/:id/x` and `/users/:id`.
 */
function withAndWithoutEmpty(segments: Segments): Segments[] {
  const full = segments.filter(isSegment)
  if (full.length === segments.length) return [full]
  return segments.at(-1) === '' ? [full, segments, segments.slice(0, -1)] : [full, segments]
}

/** A segment in lower case and decoded, as far as it can be. */
export function foldedSegment(segment: string): string {
  return decoded(segment).toLowerCase()
}

function decoded(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    // What is no UTF-8 is read as bytes, as far as it is ASCII.
    return segment.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}

function isSegment(segment: string): boolean {
  return segment !== ''
}

function isDots(segment: string): boolean {
  return segment === '.' || segment === '..'
}

function withoutDots(segments: Segments): Segments {
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  return kept
}
