import { SluiceError } from '@sluice/core'
import type { HttpContext, Outcome } from '@sluice/core/http'
import { RateLimitException, reasonPhrase, waitOf } from './exceptions.js'
import { isOfExpress, isReply, type NestGuard, platformContext } from './http.js'
import type { NestLimiter, NestRateLimitOptions, SocketOptions } from './options.js'
import { type Subscriber, subscriptionContext } from './socket-context.js'

interface GraphqlContext {
  /** Of Express; for an operation over a WebSocket, the context of graphql-ws. */
  readonly req?: { readonly res?: unknown; readonly extra?: Subscriber }
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
  const { req, res, reply, extra = req?.extra } = (given ?? {}) as GraphqlContext
  if (extra?.request && extra.socket) return subscriptionContext(extra, options)
  // Mercurius has the reply alone, Apollo on Fastify calls it `res`.
  const fastify = [reply, res].find(isReply) as { request: unknown } | undefined
  if (!fastify && !isOfExpress(req)) {
    throw new SluiceError(
      'INVALID_POLICY',
      'SluiceGuard: expected a GraphQL context with the request of Express as req, or the reply of Fastify as reply (for Apollo ' +
        'on Fastify, context: (request, reply) => ({ request, reply }) of GraphQLModule)',
    )
  }
  const context = fastify ? platformContext(fastify.request, fastify) : platformContext(req, res ?? req?.res)
  return Object.defineProperties(context, {
    sharesResponse: { value: true },
    // Quota fields of every field that a query asks for would not fit into a response.
    getResponseHeader: { value: () => undefined },
  }) as HttpContext
}

/**
 * The status of a GraphQL response is 200 whatever its fields do: `count: { only: 'failure' }` would refund every request.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkForFields(options: NestRateLimitOptions, { limiter }: NestGuard): void {
  refuseOptions(limiter.name, 'a GraphQL field, whose outcome no status shows', options, limiter)
}

/** Refuses what needs a response of the call's own. */
export function refuseOptions(name: string, of: string, options: NestRateLimitOptions, { limits }: NestLimiter): void {
  const given = {
    count: options.count,
    body: options.body,
    'ban: count': options.ban?.count,
    limits: limits.find(({ unit }) => unit?.endsWith('-bytes')),
  }
  for (const [option, value] of Object.entries(given)) {
    if (value === undefined) continue
    const what = option === 'limits' ? 'none of bytes' : 'none'
    throw new SluiceError('INVALID_POLICY', `policy "${name}": ${option}: expected ${what} for ${of}`)
  }
}

/** The code of an error in a GraphQL response: `TOO_MANY_REQUESTS`. */
function codeOf(status: number): string {
  return reasonPhrase(status).toUpperCase().replaceAll(' ', '_')
}

/** @throws RateLimitException where the call is refused, with `extensions` for the GraphQL response */
export function proceedOrThrow(outcome: Outcome): true | Promise<never> {
  const { status, verdict } = refusalOf(outcome) ?? {}
  if (outcome.proceed) return true
  // The client has left.
  if (status === undefined) return new Promise(() => {})
  throw Object.assign(new RateLimitException(status, verdict, waitOf(verdict), outcome.error), {
    extensions: { code: codeOf(status), ...waitOf(verdict) },
  })
}

/**
 * The status of a refused call that has no response of its own: a body of a responder is not sent. Undefined where the
 * client has left.
 */
export function refusalOf({ error, reply, handler, verdict }: Outcome) {
  if (handler) {
    throw new SluiceError('INVALID_POLICY', 'respond: expected no handler for GraphQL fields and messages, use pass()')
  }
  if (reply && typeof reply.body === 'object' && 'destroy' in reply.body) reply.body.destroy()
  const status = error?.status ?? reply?.status
  return status === undefined ? undefined : { status, verdict }
}
