import type { IncomingMessage } from 'node:http'
import { HttpException, Logger } from '@nestjs/common'
import { SluiceError } from '@sluice/core'
import { type HttpContext, type Outcome, propertyOf } from '@sluice/core/http'
import { asException, RateLimitException, reasonPhrase, waitOf } from './exceptions.js'
import { isOfExpress, isReply, type NestGuard, platformContext } from './http.js'
import type { NestRateLimitOptions, SocketOptions } from './options.js'
import { type Subscriber, subscriptionContext } from './socket-context.js'

interface GraphqlContext {
  /** Of Express; for an operation over a WebSocket, the context of graphql-ws. */
  readonly req?: { readonly res?: unknown; readonly extra?: Subscriber }
  /** Of Mercurius, for an operation over a WebSocket: the request of the handshake. */
  readonly request?: { readonly ws?: boolean; readonly raw: IncomingMessage }
  readonly res?: unknown
  readonly reply?: unknown
  readonly extra?: Subscriber
}

/**
 * The request behind a GraphQL field. Its response is shared with all other fields of the query.
 *
 * @throws SluiceError `INVALID_POLICY` where the context of GraphQL lacks it
 */
export function fieldContext(given: unknown, options: SocketOptions): HttpContext {
  const field = <Name extends keyof GraphqlContext>(name: Name) => propertyOf((given ?? {}) as GraphqlContext, name)
  const [req, res, reply, request] = [field('req'), field('res'), field('reply'), field('request')]
  const extra = field('extra') ?? (req && propertyOf(req, 'extra'))
  if (isEmitter(extra?.socket) && extra.request) return subscriptionContext(extra, options)
  if (request && propertyOf(request, 'ws') === true && isEmitter(request.raw))
    return subscriptionContext({ request: request.raw, socket: request.raw.socket }, options)
  // Mercurius has the reply alone, Apollo on Fastify calls it `res`.
  const fastify = [reply, res].find(isReply)
  if (!fastify && !isOfExpress(req)) {
    throw new SluiceError(
      'INVALID_POLICY',
      'SluiceGuard: expected a GraphQL context with the request of Express as req, or the reply of Fastify as reply (for Apollo ' +
        'on Fastify, context: (request, reply) => ({ request, reply }) of GraphQLModule; for operations over a WebSocket of your ' +
        'own, extra: { request, socket } with the request of the handshake)',
    )
  }
  const context = fastify
    ? platformContext(fastify.request, fastify)
    : platformContext(req, res ?? (req && propertyOf(req, 'res')))
  return Object.defineProperties(context, {
    sharesResponse: { value: true },
    // Quota fields of every field that a query asks for would not fit into a response.
    getResponseHeader: { value: () => undefined },
  }) as HttpContext
}

/**
 * Whether a value is an object of Node or of a library. An application may merge the payload of `connection_init` into the
 * context. That is JSON, which has no methods: the client would choose its address by it.
 */
function isEmitter(value: unknown): value is { readonly on: unknown } {
  return typeof (value as { on?: unknown } | null | undefined)?.on === 'function'
}

/**
 * The status of a GraphQL response is 200 whatever its fields do: `count: { only: 'failure' }` would refund every request.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkForFields(options: NestRateLimitOptions, guard: NestGuard): void {
  refuseOptions('a GraphQL field, whose outcome no status shows', options, guard)
}

/** Refuses what needs a response of the call's own. */
export function refuseOptions(of: string, options: NestRateLimitOptions, { limiter, responders }: NestGuard): void {
  const { name, limits } = limiter
  if (responders?.deceives) {
    const instead = 'use reject(), in a @RateLimit where shadow() is of the module'
    throw new SluiceError('INVALID_POLICY', `policy "${name}": respond: expected no shadow() for ${of}: ${instead}`)
  }
  const parts = {
    count: options.count,
    body: options.body,
    'ban: count': options.ban?.count,
    limits: limits.find(({ unit }) => unit?.endsWith('-bytes')),
  }
  for (const [option, value] of Object.entries(parts)) {
    if (value === undefined) continue
    const what = option === 'limits' ? 'none of bytes' : 'none'
    throw new SluiceError('INVALID_POLICY', `policy "${name}": ${option}: expected ${what} for ${of}`)
  }
}

/** The code of an error in a GraphQL response: `TOO_MANY_REQUESTS`. */
function codeOf(status: number): string {
  return reasonPhrase(status).toUpperCase().replaceAll(' ', '_')
}

const logger = new Logger('SluiceGuard')

/**
 * An error of a limiter for a GraphQL response, which has the message of any error. That of one that is not for clients goes
 * to the log alone.
 */
export function asFieldError(error: unknown): unknown {
  const known = asException(error)
  if (known instanceof RateLimitException) {
    const extensions = { code: codeOf(known.getStatus()), ...waitOf(known.verdict) }
    if (!known.verdict) return Object.assign(known, { extensions })
    // Apollo's driver gives an error whose response has a status a code of its own, and knows none for 429.
    const { statusCode: _, ...response } = known.getResponse() as { readonly statusCode: number }
    return Object.assign(known, { extensions, response })
  }
  if (known instanceof HttpException || (known as Error | undefined)?.name === 'GraphQLError') return known
  logger.error(error)
  return Object.assign(new HttpException(reasonPhrase(500), 500, { cause: error }), {
    extensions: { code: codeOf(500) },
  })
}

/**
 * Also where the client has left: the response that a field shares is over when all fields are, and holds their permits.
 *
 * @throws RateLimitException where a field or a message is refused
 */
export function proceedOrThrow(outcome: Outcome): true {
  if (outcome.proceed) return true
  const { status, verdict } = refusalOf(outcome)
  throw new RateLimitException(status, verdict, waitOf(verdict), outcome.error)
}

/** The status of a refused call that has no response of its own: a body of a responder is not sent. */
function refusalOf({ error, reply, handler, verdict }: Outcome) {
  if (handler) {
    throw new SluiceError('INVALID_POLICY', 'respond: expected no handler for GraphQL fields and messages, use pass()')
  }
  if (reply && typeof reply.body === 'object' && 'destroy' in reply.body) reply.body.destroy()
  // Without one the client has left. A responder of a policy that is data, or your own, may reply with a success.
  const status = error?.status ?? reply?.status ?? 0
  return { status: status < 400 ? 429 : status, verdict }
}
