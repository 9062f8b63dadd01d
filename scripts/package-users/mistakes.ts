// Mistakes, compiled by the versions of TypeScript that users have. The error of a line has to name the option, as the comment
// before it says.
import { byIp, createLimiter, type Limit, perMinute, rateLimit, reject } from '@sluice/express'
import { rateLimit as koaRateLimit } from '@sluice/koa'

// says: Property 'window' is missing in type '{ limit: number; }' but required in type 'SingleLimit'
rateLimit({ limit: 100 })
// says: Property 'limit' is missing in type '{ window: "1m"; }' but required in type 'SingleLimit'
koaRateLimit({ window: '1m' })
// says: is missing the following properties from type 'SingleLimit': limit, window
createLimiter({ name: 'api' })
// says: Types of property 'limits' are incompatible
rateLimit({ limit: 1, window: '1m', limits: [perMinute(1)] })
// says: Types of property 'tiers' are incompatible
koaRateLimit({ limits: [perMinute(1)], tiers: { free: [perMinute(1)] }, tier: () => 'free' })
// says: Types of property 'tier' are incompatible
rateLimit({ limit: 1, window: '1m', tier: () => 'free' })
// says: but required in type 'LimitsByTier'
rateLimit({ tiers: { free: [perMinute(1)] as Limit[] } })
// says: 'limt' does not exist in type 'ExpressRateLimitOptions & SingleLimit'. Did you mean to write 'limit'?
rateLimit({ limt: 100, window: '1m' })
// says: is not assignable to type '"use window, in milliseconds or as a duration such as '1m'"'
rateLimit({ limit: 100, windowMs: 60_000 })
// says: 'respnd' does not exist in type 'KoaRateLimitOptions & SingleLimit'. Did you mean to write 'respond'?
koaRateLimit({ limit: 100, window: '1m', respnd: reject() })
// says: Use<"whole milliseconds or a duration such as
rateLimit({ limit: 100, window: '1 minute' })
// says: is not assignable to type 'KeyFunction<
rateLimit({ limit: 100, window: '1m', key: byIp })
// says: Type '"draft-12"' is not assignable to type 'HeadersOption | undefined'. Did you mean '"draft-11"'?
rateLimit({ limit: 100, window: '1m', headers: 'draft-12' })
// says: Use<"memoryStore() or redisStore(client)", Store>
rateLimit({ limit: 100, window: '1m', store: {} })
