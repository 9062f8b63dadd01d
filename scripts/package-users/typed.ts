// A typed program, compiled once as CommonJS (node16), once as an ES module, and once for a bundler.
import { createLimiter, type RateLimitHandler, rateLimit, type Verdict } from '@sluice/express'
import { rateLimit as fastifyRateLimit } from '@sluice/fastify'
import { rateLimit as koaRateLimit } from '@sluice/koa'

export const middleware: RateLimitHandler = rateLimit({ limit: 100, window: '1m' })
export const plugins = [koaRateLimit({ limit: 100, window: '1m' }), fastifyRateLimit]
export const verdict: Promise<Verdict> = createLimiter({ limit: 20, window: '1m' }).consume('ann', { cost: 3 })

// @ts-expect-error an option that does not exist
rateLimit({ limt: 100, window: '1m' })
