/**
 * The value of an `Authorization` header in one spelling (RFC 9110, 11.4): the scheme in lower case, one space, and the
 * token as it is. What follows a token is left out, as some verifiers do not read it; of white space between parameters
 * one space is left. Of the base64 of `Basic`, which has many spellings, the shortest is taken.
 */
export function credentials(value: string): string {
  const [first = '', ...rest] = value.trim().split(/\s+/)
  const [token] = rest
  // A key without a scheme, whose case counts.
  if (token === undefined) return first
  const scheme = first.toLowerCase()
  if (scheme === 'basic') return `basic ${Buffer.from(Buffer.from(token, 'base64').toString()).toString('base64')}`
  // Parameters have values (`name=value`); a token ends where there is an `=`. Bearer has no parameters (RFC 6750, 2.1).
  const hasParameters = scheme !== 'bearer' && /=[^=]/.test(token)
  return `${scheme} ${hasParameters ? rest.join(' ') : token}`
}
