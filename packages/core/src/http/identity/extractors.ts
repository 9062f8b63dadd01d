import { ofKind, withTraits } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { kindOfName } from '../../store/identity.js'
import { credentialsIn, isHeaderOfCredentials, secretValue, tokenIn } from '../../util/credentials.js'
import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { sha256Of } from '../../util/hash.js'
import { knownOptions } from '../../util/validate.js'
import { cookieReader } from './cookie.js'
import { flag } from './flag.js'
import { needsContext } from './needs-context.js'

export interface SecretOptions {
  /** Whether the value is a secret: only its SHA-256 hash leaves the process then. @default true */
  readonly secret?: boolean
}

export interface CookieOptions extends SecretOptions {
  /**
   * Whether to take the value that the framework has verified by the cookie's signature, without the signature.
   *
   * Express verifies by cookie-parser, Koa by `app.keys`, Fastify by @fastify/cookie. A forged cookie counts as a
   * missing one.
   * @default false
   */
  readonly signed?: boolean
}

/** Hashes a secret as `byHeader` and `byCookie` do, for your own key functions: 256 bits of SHA-256, in base64url. */
export function hashedKey(value: string): string {
  return sha256Of(value)
}

export interface UserOptions {
  /**
   * The value of `WWW-Authenticate` in the response to a request without such a key, such as `'Bearer'`.
   *
   * The status is 401 then, else 400.
   * @default none
   */
  readonly challenge?: string
}

export interface CredentialsOptions extends UserOptions {
  /**
   * The schemes that the application accepts, in any case.
   *
   * Credentials of others count as missing (see `anonymous`).
   * @default ['bearer', 'basic']
   */
  readonly schemes?: readonly string[]
}

/**
 * The user that the application has identified. A request without a user is invalid (see `anonymous` and `onInvalid`): such
 * requests never share one bucket.
 *
 * @example byUser((req) => req.user?.id)
 * @throws SluiceError `INVALID_POLICY`
 */
export function byUser<Subject>(user: KeyFunction<Subject>, options: UserOptions = {}): KeyFunction<Subject> {
  knownOptions('byUser', options, ['challenge'])
  return ofKind('byUser', 'user', 'user', user, checkedChallenge('byUser', options))
}

/**
 * The credentials in `Authorization`, hashed: the token of `Bearer` and other schemes, the user-id of `Basic`. One credential
 * is one key in all its spellings. A request that verifiers may read differently, such as one with a second token, is invalid.
 *
 * @example byCredentials({ schemes: ['bearer'], challenge: 'Bearer' })
 * @throws SluiceError `INVALID_POLICY`
 */
export function byCredentials<Subject>(options: CredentialsOptions = {}): KeyFunction<Subject> {
  knownOptions('byCredentials', options, ['schemes', 'challenge'])
  const schemes = checkedSchemes(options.schemes)
  return withTraits(
    (_request, context) => {
      const value = needsContext('byCredentials', context).header('authorization')
      return value && keyOf(credentialsIn(value, schemes), true)
    },
    {
      kind: 'credentials',
      normalize: (value) => secretValue('credentials', value),
      madeOf: [schemes.join()],
      challenge: checkedChallenge('byCredentials', options),
    },
  )
}

/**
 * A request header, such as an API key; hashed unless `secret: false`. The key of `authorization` is its token, without the
 * scheme. `byCredentials` reads that header as verifiers do.
 */
export function byHeader<Subject>(name: string, options: SecretOptions = {}): KeyFunction<Subject> {
  const lower = checkedName('byHeader', name).toLowerCase()
  const { secret } = checkedSecret('byHeader', options, ['secret'])
  const kind = kindOfName('header', lower)
  const isCredentials = isHeaderOfCredentials(kind)
  const counted = (value: string | undefined) => keyOf(isCredentials && value ? tokenIn(value) : value, secret)
  return withTraits((_request, context) => counted(needsContext('byHeader', context).header(lower)), {
    kind,
    normalize: secret || isCredentials ? counted : undefined,
    madeOf: [secret],
  })
}

/**
 * A cookie, such as a session; hashed unless `secret: false`. The first pair of the name counts, unquoted and percent-decoded.
 *
 * @throws SluiceError per request `INVALID_KEY` where the parsers of the frameworks read different values; with `signed`,
 * `INVALID_POLICY` where the application has no support for signed cookies
 */
export function byCookie<Subject>(name: string, options: CookieOptions = {}): KeyFunction<Subject> {
  checkedName('byCookie', name)
  const { secret } = checkedSecret('byCookie', options, ['secret', 'signed'])
  const signed = flag('byCookie', 'signed', options.signed, false)
  const read = cookieReader(name)
  return withTraits(
    signed
      ? (_request, context) => keyOf(needsContext('byCookie', context).signedCookie(name), secret)
      : (_request, context) => keyOf(read(needsContext('byCookie', context).header('cookie')), secret),
    { kind: kindOfName('cookie', name), normalize: secret ? hashedIfAny : undefined, madeOf: [secret, signed] },
  )
}

/** The name of a header, a cookie or a scheme (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

function keyOf(value: string | undefined, secret: boolean): string | undefined {
  return secret && value ? hashedKey(value) : value
}

const hashedIfAny = (value: string) => keyOf(value, true)

function checkedName(where: string, name: unknown): string {
  if (typeof name !== 'string' || !TOKEN.test(name)) {
    invalidPolicy(where, 'name', 'the name of a header or cookie', name)
  }
  return name
}

function checkedChallenge(where: string, { challenge }: UserOptions): string | undefined {
  if (challenge !== undefined && (typeof challenge !== 'string' || !/^[!-~](?:[ -~]*[!-~])?$/.test(challenge))) {
    invalidPolicy(where, 'challenge', 'the value of a WWW-Authenticate header such as "Bearer"', challenge)
  }
  return challenge
}

function checkedSchemes(given: unknown = ['bearer', 'basic']): readonly string[] {
  const isScheme = (scheme: unknown) => typeof scheme === 'string' && TOKEN.test(scheme)
  if (!Array.isArray(given) || given.length === 0 || !given.every(isScheme)) {
    invalidPolicy('byCredentials', 'schemes', 'an array of schemes such as ["bearer"]', given)
  }
  return [...new Set(given.map((scheme: string) => scheme.toLowerCase()))].sort()
}

function checkedSecret(where: string, options: SecretOptions, known: readonly string[]): { secret: boolean } {
  knownOptions(where, options, known)
  return { secret: flag(where, 'secret', options.secret, true) }
}

knowFactories({
  'byUser((req) => …)': byUser,
  'byCredentials()': byCredentials,
  'byHeader(name)': byHeader,
  'byCookie(name)': byCookie,
})
