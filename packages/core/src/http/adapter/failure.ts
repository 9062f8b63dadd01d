import { show } from '../../util/errors.js'

/**
 * What was thrown, as something that no framework takes for anything else: Express and Fastify go on
 * after `next(undefined)`, Express leaves the route after `next('route')`, and Koa never answers what
 * threw nothing.
 */
export function asFailure(thrown: unknown): object {
  return typeof thrown === 'object' && thrown !== null
    ? thrown
    : new Error(`rateLimit: a function failed with ${show(thrown)}`, { cause: thrown })
}
