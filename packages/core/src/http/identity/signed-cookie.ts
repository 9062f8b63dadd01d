import { SluiceError } from '../../util/errors.js'

/** The error of an adapter whose framework is not set up to verify cookies. */
export function noSignedCookies(remedy: string): SluiceError {
  return new SluiceError('INVALID_POLICY', `byCookie: signed: expected support for signed cookies (${remedy})`)
}

/** The framework's value of a signed cookie, as text. Express parses JSON, and yields false for a forged cookie. */
export function signedCookieText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return value === undefined || value === null || value === false ? undefined : JSON.stringify(value)
}
