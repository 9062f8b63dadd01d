import { hash } from 'node:crypto'
import { invalidPolicy } from '../../errors.js'
import { knownOptions, oneOf, optionalFunction } from '../../limits/checks.js'
import type { KeyFunction } from '../../limits/limit.js'
import { cookieValue } from './cookie.js'
import { needsContext } from './needs-context.js'

export interface SecretOptions {
  /** Whether the value is a secret, of which only the SHA-256 hash may leave the process. @default true */
  readonly secret?: boolean
}

/** What `byHeader` and `byCookie` make of a secret: for `limiter.block(hashedKey(apiKey), …)`. */
export function hashedKey(value: string): string {
  return hash('sha256', value, 'base64url')
}

/**
 * Whom the application knows the client as.
 *
 * @example byUser((req) => req.user?.id)
 * @throws SluiceError per request `INVALID_KEY` where there is none: it never becomes one bucket for all.
 */
export function byUser<Subject>(user: KeyFunction<Subject>): KeyFunction<Subject> {
  if (user === undefined) invalidPolicy('byUser', 'user', 'a function of the request', user)
  optionalFunction('byUser', 'user', user)
  return (request, context) => user(request, context)
}

/** A request header, such as an API key; hashed unless `secret: false`. */
export function byHeader<Subject>(name: string, options: SecretOptions = {}): KeyFunction<Subject> {
  const lower = checkedName('byHeader', name).toLowerCase()
  const { secret } = checkedSecret('byHeader', options)
  return (_request, context) => keyOf(needsContext('byHeader', context).header(lower), secret)
}

/** A cookie, such as a session; hashed unless `secret: false`. */
export function byCookie<Subject>(name: string, options: SecretOptions = {}): KeyFunction<Subject> {
  checkedName('byCookie', name)
  const { secret } = checkedSecret('byCookie', options)
  return (_request, context) => keyOf(cookieValue(needsContext('byCookie', context).header('cookie'), name), secret)
}

const path: KeyFunction<never> = (_request, context) => needsContext('byPath', context).path
const route: KeyFunction<never> = (_request, context) => needsContext('byRoute', context).route
const method: KeyFunction<never> = (_request, context) => {
  const { method } = needsContext('byMethod', context)
  return method === 'HEAD' ? 'GET' : method
}
const all: KeyFunction<unknown> = () => 'everyone'

/** The path as requested, without the query. Where other spellings reach the same handler, prefer `byRoute`. */
export const byPath = <Subject>(): KeyFunction<Subject> => path as KeyFunction<Subject>

/** The pattern of the route, such as `/users/:id`. In Express it is known only to middleware on the route itself. */
export const byRoute = <Subject>(): KeyFunction<Subject> => route as KeyFunction<Subject>

/** The method; HEAD counts as GET. */
export const byMethod = <Subject>(): KeyFunction<Subject> => method as KeyFunction<Subject>

/** One bucket for all, on purpose. */
export const everyone = <Subject>(): KeyFunction<Subject> => all

/**
 * Several keys as one: `compose(byIp(), byPath())` counts each client on each path.
 * Different parts never make the same key, whatever they contain.
 */
export function compose<Subject>(...keys: KeyFunction<Subject>[]): KeyFunction<Subject> {
  if (keys.length === 0) invalidPolicy('compose', 'keys', 'at least one key function', undefined)
  keys.forEach((key, i) => {
    if (typeof key !== 'function') invalidPolicy('compose', `keys[${i}]`, 'a key function such as byIp()', key)
  })
  return (request, context) => {
    let composed = ''
    for (const key of keys) {
      const part = key(request, context)
      // What is no key on its own is none as a part: the limiter refuses it and says what came.
      if (part === '' || (typeof part !== 'string' && typeof part !== 'bigint' && !Number.isFinite(part))) return part
      composed += `${composed && '|'}${String(part).replace(/[\\|]/g, '\\$&')}`
    }
    return composed
  }
}

function keyOf(value: string | undefined, secret: boolean): string | undefined {
  return secret && value ? hashedKey(value) : value
}

function checkedName(where: string, name: unknown): string {
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    invalidPolicy(where, 'name', 'the name of a header or cookie', name)
  }
  return name
}

function checkedSecret(where: string, options: SecretOptions): { secret: boolean } {
  knownOptions(where, options, ['secret'])
  const { secret = true } = options
  if (typeof secret !== 'boolean') oneOf(where, 'secret', secret, ['true', 'false'])
  return { secret }
}
