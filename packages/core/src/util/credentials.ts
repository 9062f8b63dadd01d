import { RequestFault } from './request-fault.js'

/** Most parts that are separated by white space: a scheme, and its parameters. */
const MOST_PARTS = 64
/** Most characters of the base64 of `Basic`. */
const LONGEST_BASIC = 4096

/**
 * The value of an `Authorization` header in one spelling (RFC 9110, 11.4): the scheme in lower case, one space, and the
 * token as it is. What follows a token is left out, as some verifiers do not read it; of white space between parameters
 * one space is left. Of the base64 of `Basic`, which has many spellings, the shortest is taken.
 *
 * @throws RequestFault where there is more than that of parameters, or of base64
 */
export function credentials(value: string): string {
  const [first = '', ...rest] = value.trim().split(/\s+/, MOST_PARTS + 1)
  const [token] = rest
  // A key without a scheme, whose case counts.
  if (token === undefined) return first
  const scheme = first.toLowerCase()
  if (scheme === 'basic') {
    if (token.length > LONGEST_BASIC) throw tooLong(`${LONGEST_BASIC} characters of base64`)
    return `basic ${Buffer.from(Buffer.from(token, 'base64').toString()).toString('base64')}`
  }
  // Parameters have values (`name=value`); a token ends where there is an `=`. Bearer has no parameters (RFC 6750, 2.1).
  const hasParameters = scheme !== 'bearer' && /=[^=]/.test(token)
  if (!hasParameters) return `${scheme} ${token}`
  if (rest.length === MOST_PARTS) throw tooLong(`${MOST_PARTS - 1} parameters`)
  return `${scheme} ${rest.join(' ')}`
}

function tooLong(most: string): RequestFault {
  return new RequestFault('wrong key', `byHeader: expected credentials of at most ${most}`)
}
