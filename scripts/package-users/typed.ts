// A typed program, compiled once as CommonJS (node16), once as an ES module, and once for a bundler.
import { type Verdict as CoreVerdict, createLimiter as createCoreLimiter } from '@sluice/core'
import { createGuard, type Outcome } from '@sluice/core/http'
import { CONSUME, type Op, type Store as StorePort } from '@sluice/core/store'
import { createLimiter, memoryStore, type RateLimitHandler, rateLimit, type Store, type Verdict } from '@sluice/express'
import { rateLimit as fastifyRateLimit } from '@sluice/fastify'
import { rateLimit as koaRateLimit } from '@sluice/koa'

export const middleware: RateLimitHandler = rateLimit({ limit: 100, window: '1m' })
export const plugins = [koaRateLimit({ limit: 100, window: '1m' }), fastifyRateLimit]
export const verdict: Promise<Verdict> = createLimiter({ limit: 20, window: '1m' }).consume('ann', { cost: 3 })

// Objects of one entry fit those of another: the classes are one.
export const coreVerdict: Promise<CoreVerdict> = verdict
export const guard = createGuard<string>({ limit: 1, window: '1m' })
export const verdictOf = ({ verdict }: Outcome): Verdict | undefined => verdict
export const port: StorePort = memoryStore()
export const store: Store = port
export const limiters = [
  createLimiter({ store, limit: 1, window: '1m' }),
  createCoreLimiter({ limit: 1, window: '1m' }),
]
export const op: Op = CONSUME

// @ts-expect-error an option that does not exist
rateLimit({ limt: 100, window: '1m' })
