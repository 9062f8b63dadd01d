import { show } from '../../util/errors.js'

/**
 * Returns a thrown value as an object that every framework takes for an error. After `next(undefined)` Express and Fastify
 * continue, and after `next('route')` Express leaves the route. Koa never responds where `undefined` was thrown.
 */
export function asFailure(thrown: unknown): object {
  return typeof thrown === 'object' && thrown !== null
    ? thrown
    : new Error(`rateLimit: a function failed with ${show(thrown)}`, { cause: thrown })
}
