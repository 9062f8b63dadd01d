import { SluiceError } from '../../util/errors.js'

/** The error of an adapter whose framework cannot verify cookies as it is set up. */
export function noSignedCookies(remedy: string): SluiceError {
  return new SluiceError('INVALID_POLICY', `byCookie: signed: expected support for signed cookies (${remedy})`)
}

/** What a framework makes of a signed cookie, as text: Express parses JSON, and says false of a forged one. */
export function signedCookieText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return value === undefined || value === null || value === false ? undefined : JSON.stringify(value)
}
