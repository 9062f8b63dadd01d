import { isIP } from 'node:net'

/** Deeper paths and longer segments end with an ellipsis. */
const MAX_SEGMENTS = 8
const MAX_SEGMENT = 48

/** `http://user:password@host`, as clients of proxies send it. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/]*/i
const UUID = /^\{?[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\}?$/i
const NUMBER = /^[+-]?\d[\d.,:_-]*$/
/** One ending or two of a file's name, such as `.min.js`. */
const WITH_ENDING = /^(.+?)((?:\.[a-z][a-z\d]{0,4}){1,2})$/i
/** Numbers within a name: `invoice-1234`, `user12345`. */
const NUMBERS_WITHIN = /(?<![a-z\d])\d{3,}(?![a-z\d])|\d{5,}/gi

/**
 * The path of a request target, without what names a person or opens a door: no query, user info or path parameters, and a
 * placeholder for each segment that looks like a number, an address, a UUID, an e-mail address or a token. `/users/42/posts?key=…`
 * becomes `/users/:number/posts`.
 *
 * Whether a segment is a token is guessed by its letters and digits. A short or pronounceable secret stays.
 */
export function unnamedPath(target: string): string {
  const path = target.replace(ORIGIN, '').replace(/[?#].*$/s, '')
  if (path === '' || path === '*') return path || '/'
  // A host and port of CONNECT, or bytes of another protocol.
  if (!path.startsWith('/')) return ':other'
  const segments = path.slice(1).split('/', MAX_SEGMENTS + 1)
  const shown = segments.slice(0, MAX_SEGMENTS).map((segment, i) => foldedSegment(segment, segments[i - 1]))
  return `/${shown.join('/')}${segments.length > MAX_SEGMENTS ? '/…' : ''}`
}

/** What stands behind it opens a door, however it looks. */
const DOOR =
  /^(?:invit(?:e|es|ation|ations)|magic(?:-?links?)?|tokens?|resets?|reset-password|password-reset|verif(?:y|ication)|confirm(?:ation)?|activat(?:e|ion)|unsubscribe|shares?|shared|join|claim|redeem|coupons?|vouchers?|sessions?|keys?|api-?keys?|otp|codes?|callback|hooks?|webhooks?)$/i
/** What stands behind it names a person. */
const PERSON =
  /^(?:u|users?|people|persons?|profiles?|members?|accounts?|customers?|clients?|authors?|contacts?|patients?|employees?|students?|by)$/i
/** Words that stand behind these, and are no name and no key. */
const PAGE = /^(?:me|self|new|all|login|logout|signup|register|search|settings|password|edit|list|index(?:\.\w+)?)$/i
/** A code such as `ABCD-EFGH`. */
const CODE = /^[A-Z\d]{3,}(?:-[A-Z\d]{3,})+$/

function foldedSegment(segment: string, before: string | undefined): string {
  const folded = foldedByItself(segment)
  if (before === undefined || folded === '' || folded.includes(':') || PAGE.test(folded)) return folded
  if (DOOR.test(before)) return ':token'
  return PERSON.test(before) ? ':name' : folded
}

function foldedByItself(segment: string): string {
  const raw = segment.replace(/;.*$/s, '')
  const text = decoded(decoded(decoded(raw)))
  if (text.includes('@')) return ':email'
  if (text.includes('://')) return ':url'
  if (UUID.test(text)) return ':uuid'
  if (isIP(text)) return ':address'
  if (NUMBER.test(text)) return ':number'
  if (CODE.test(text)) return ':token'
  if (/^~./.test(text)) return ':name'
  const [, stem = text, ending = ''] = WITH_ENDING.exec(text) ?? []
  if (looksLikeToken(stem)) return `:token${ending}`
  // An encoded query, as of a link that was encoded twice.
  return shortened(raw.replace(/(?:%3f|%23|%3b).*$/is, '').replace(NUMBERS_WITHIN, ':number'), MAX_SEGMENT)
}

/** In tokens, letters and digits take turns, capitals stand beside digits and marks, and consonants pile up. */
function looksLikeToken(text: string): boolean {
  if (text.length < 8) return false
  const turns = text.match(/[a-z](?=\d)|\d(?=[a-z])/gi)?.length ?? 0
  if (turns >= 3 || text.split(/[^a-z\d]+/i).some(isRandom)) return true
  if (text.length < 16) return false
  return (/[a-z][A-Z]/.test(text) && /[\d_-]/.test(text)) || /[^aeiouy\d\W_]{6}/i.test(text)
}

/** Whether a run of letters and digits is random. */
function isRandom(run: string): boolean {
  return run.length > 32 || (run.length >= 12 && /\d/.test(run) && /[a-z]/i.test(run))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Bytes of another character set: what is ASCII is read all the same.
    return text.replace(/%([0-7][\da-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}

/** A text that is not cut within a surrogate pair. */
export function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length).replace(/[\ud800-\udbff]$/, '')}…` : text
}
