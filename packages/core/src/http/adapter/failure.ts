import { show } from '../../util/errors.js'

/**
 * What was thrown, as an object that every framework takes for an error: after `next(undefined)` Express and Fastify go on,
 * after `next('route')` Express leaves the route, and Koa never answers where `undefined` was thrown.
 */
export function asFailure(thrown: unknown): object {
  return typeof thrown === 'object' && thrown !== null
    ? thrown
    : new Error(`rateLimit: a function failed with ${show(thrown)}`, { cause: thrown })
}
