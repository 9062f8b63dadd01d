import { sha256Of } from './hash.js'
import { RequestFault } from './request-fault.js'

/** Most parts that are separated by white space: a scheme, and its parameters. */
const MAX_PARTS = 64
/** Most characters of the base64 of `Basic`. */
const LONGEST_BASIC = 4096

/** The value that is counted for a secret of a request, by its kind. Undefined for kinds whose values are counted as they are. */
export function secretValue(kind: string, raw: string): string | undefined {
  if (kind === 'credentials') return sha256Of(credentialsIn(raw) ?? '')
  if (isHeaderOfCredentials(kind)) return sha256Of(tokenIn(raw))
  return kind.startsWith('header:') || kind.startsWith('cookie:') ? sha256Of(raw) : undefined
}

export function isHeaderOfCredentials(kind: string): boolean {
  return kind === 'header:authorization' || kind === 'header:proxy-authorization'
}

/**
 * The token or the parameters of an `Authorization` header in one spelling (RFC 9110, 11.4). The scheme is left out, as some
 * verifiers do not read it and clients can make it up. The rest after a token is left out, too. White space between parameters
 * becomes one space. The base64 of `Basic` has many spellings, and the shortest is taken.
 *
 * @throws RequestFault for too many parameters, for too much base64, and for base64 in several parts
 */
export function tokenIn(value: string): string {
  const [first = '', ...rest] = value.trim().split(/\s+/, MAX_PARTS + 1)
  const [token] = rest
  // A key without a scheme.
  if (token === undefined) return first
  const scheme = first.toLowerCase()
  if (scheme === 'basic') {
    // Some verifiers decode the parts as one, and others the first alone.
    if (rest.length > 1) throw wrong('base64 in one part')
    return basicBytes(token).toString('base64')
  }
  // Parameters have values (`name=value`); a token ends where there is an `=`. Bearer has no parameters (RFC 6750, 2.1).
  const hasParameters = scheme !== 'bearer' && /=[^=]/.test(token)
  if (!hasParameters) return token
  if (rest.length === MAX_PARTS) throw wrong(`at most ${MAX_PARTS - 1} parameters`)
  return rest.join(' ')
}

/**
 * The value that credentials are counted as. For `Basic` it is the user-id (RFC 7617), since a made-up password is no client of
 * its own. For all other schemes it is the token, whatever the scheme.
 *
 * @param schemes the accepted ones, in lower case; any if there are none
 * @returns undefined for credentials of other schemes, and for an empty user-id
 * @throws RequestFault where verifiers would read different values
 */
export function credentialsIn(value: string, schemes?: readonly string[]): string | undefined {
  const [, given = '', token = ''] = /^(\S+)(?:[ \t]+([^ \t].*))?$/.exec(value.trim()) ?? []
  const scheme = given.toLowerCase()
  if (schemes && !schemes.includes(scheme)) return undefined
  // Visible characters of ASCII but `"` and `,`, at which some verifiers cut.
  if (!/^[!#-+\--~]+$/.test(token)) throw wrong('a scheme and a token in one part')
  if (scheme !== 'basic') return token.replace(SIGNED_TOKEN, (_, signed, by) => signed + base64url(by))
  // One character per byte: no two user-ids become one.
  const pair = basicBytes(token).toString('latin1')
  const end = pair.indexOf(':')
  if (end < 0) throw wrong('a user-id and a password, separated by ":"')
  return end === 0 ? undefined : `basic ${pair.slice(0, end)}`
}

/** A JSON Web Token. The signed part has one spelling. The base64 of the signature has many that decoders take for one. */
const SIGNED_TOKEN = /^(eyJ[^.]*\.[^.]*\.)([^.]+)$/

const base64url = (text: string) => Buffer.from(text, 'base64').toString('base64url')

function basicBytes(token: string): Buffer {
  if (token.length > LONGEST_BASIC) throw wrong(`at most ${LONGEST_BASIC} characters of base64`)
  return Buffer.from(token, 'base64')
}

function wrong(expected: string): RequestFault {
  return new RequestFault('wrong key', `credentials: expected ${expected}`)
}
