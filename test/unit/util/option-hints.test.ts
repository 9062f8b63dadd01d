import { createLimiter, list, memoryStore, redisStore, shadow, slidingLog } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { describe, expect, test } from 'vitest'

type Anything = never

/** The part of an error's message that names the replacement of an unknown option. */
function hintOf(make: () => unknown): string | undefined {
  try {
    make()
  } catch (error) {
    // Without a hint, the message lists the options.
    return /: unknown option(?:: (.*)| \(the options are .*\)), got /.exec((error as Error).message)?.[1]
  }
  throw new Error('expected an error')
}

describe('hints for options of other libraries', () => {
  const base = { limit: 5, window: '1m' }
  test.each<[string, string]>([
    ['windowMs', "use window, in milliseconds or as a duration such as '1m'"],
    ['timeWindow', "use window, in milliseconds or as a duration such as '1m'"],
    ['duration', "use window, in milliseconds or as a duration such as '60s'"],
    ['max', 'use limit'],
    ['points', 'use limit'],
    ['keyGenerator', 'use key, such as byIp() or (req) => req.user.id'],
    ['handler', 'use respond: handler((…, verdict) => …), or respond: reject({ status: 429, body })'],
    ['message', 'use respond, such as reject({ status: 429, body })'],
    ['standardHeaders', "use headers, such as 'draft-6', ['draft-11', 'legacy'] or false"],
    ['legacyHeaders', "use headers, such as 'draft-6', ['draft-11', 'legacy'] or false"],
    ['skipSuccessfulRequests', "use count: { only: 'failure' }"],
    ['skipFailedRequests', "use count: { only: 'success' }"],
    ['blockDuration', "use ban: { after, within, for }, or limiter.block(identity, { for: '1h' })"],
    ['allowList', 'use allow, such as ipRanges([…]) or a function of the request'],
    ['blacklist', 'use deny, such as ipRanges([…]) or a function of the request'],
    ['db', 'use store: redisStore(client)'],
    ['driver', 'use store: redisStore(client)'],
    ['skipOnError', "use unavailable: { decide: 'allow' }"],
    ['delayAfter', 'use respond: delay({ … })'],
  ])("the error of another library's option names the replacement: %s", (option, hint) => {
    expect(hintOf(() => rateLimit({ ...base, [option]: 5 } as Anything))).toBe(hint)
  })

  test('an option of another library has no hint if its replacement is not available', () => {
    expect(hintOf(() => slidingLog({ limit: 5, window: '1m', skipFailedRequests: true } as Anything))).toBeUndefined()
  })
})

describe('hints for earlier names', () => {
  const base = { limit: 5, window: '1m' }
  const store = (options: object) => () => redisStore({} as Anything, options as Anything)
  const middleware = (options: object) => () => rateLimit({ ...base, ...options } as Anything)
  test.each<[string, () => unknown, string]>([
    ['onUnavailable', middleware({ onUnavailable: 'deny' }), 'use unavailable: { decide }'],
    [
      'onUnavailable',
      () => createLimiter({ ...base, onUnavailable: 'deny' } as Anything),
      'use unavailable: { decide }',
    ],
    ['share', middleware({ share: 0.5 }), 'use unavailable: { share }'],
    ['mode', middleware({ mode: 'report' }), 'use enforce: { mode }'],
    ['enforcePercent', middleware({ enforcePercent: 10 }), 'use enforce: { percent }'],
    ['enforceSalt', middleware({ enforceSalt: 'x' }), 'use enforce: { salt }'],
    ['reportHeaders', middleware({ reportHeaders: true }), 'use enforce: { headers }'],
    ['maxWait', middleware({ maxWait: '1s' }), 'use count: { only, within }'],
    ['maxBodyBytes', middleware({ maxBodyBytes: 5 }), 'use body: { max }'],
    ['requireLength', middleware({ requireLength: true }), 'use body: { max, requireLength }'],
    ['timeoutMs', store({ timeoutMs: 50 }), 'use timeout'],
    ['connectTimeoutMs', store({ connectTimeoutMs: 50 }), 'use connectTimeout'],
    [
      'most',
      () => createLimiter({ ...base, ban: { after: 1, within: '1m', for: { first: '1m', most: '1h' } } } as Anything),
      'use max',
    ],
  ])("the error of an option's earlier name names the current one: %s", (_, make, hint) => {
    expect(hintOf(make)).toBe(hint)
  })

  test.each(['success', 'failure'])(
    'the error of an outcome in place of options shows the object: count: %s',
    (outcome) => {
      expect(() => rateLimit({ ...base, count: outcome } as Anything)).toThrow(`such as { only: "${outcome}" }`)
    },
  )
})

describe('hints for misspelt options', () => {
  test.each<[string, () => unknown, string]>([
    ['a letter too few', () => createLimiter({ limt: 5, window: '1m' } as Anything), 'did you mean limit?'],
    ['two letters swapped', () => createLimiter({ limit: 5, widnow: '1m' } as Anything), 'did you mean window?'],
    ['other case', () => rateLimit({ limit: 5, window: '1m', onverdict() {} } as Anything), 'did you mean onVerdict?'],
    ['a store', () => redisStore({} as Anything, { timeOut: 5 } as Anything), 'did you mean timeout?'],
  ])('the error of a misspelt option names the nearest one: %s', (_, make, hint) => {
    expect(hintOf(make)).toBe(hint)
  })

  test('a misspelt option far from all others has no hint', () => {
    expect(hintOf(() => createLimiter({ limit: 5, window: '1m', colour: 'red' } as Anything))).toBeUndefined()
  })
})

describe('hints for options of the other store', () => {
  test.each([
    ['prefix', /it is for redisStore, as a memory store does not share its keys .*; leave it out here/],
    ['timeout', /it is for redisStore, as a memory store has no server; leave it out here/],
  ])('the error of an option of redisStore explains why memoryStore has none: %s', (option, hint) => {
    expect(hintOf(() => memoryStore({ [option]: 5 } as Anything))).toMatch(hint)
  })

  test('the error of maxKeys of redisStore names its counterpart in Redis', () => {
    expect(hintOf(() => redisStore({} as Anything, { maxKeys: 5 } as Anything))).toBe(
      'it is for memoryStore; the room of Redis is its maxmemory',
    )
  })
})

describe('a Map in place of an object', () => {
  const map = new Map<string, unknown>([['maxKeys', 5]]) as Anything
  test.each<[string, () => unknown]>([
    ['options of a store', () => memoryStore(map)],
    ['options of a middleware', () => rateLimit(map)],
    ['policies', () => rateLimit({ policies: map })],
    ['tiers', () => createLimiter({ tiers: map, tier: () => 'free' } as Anything)],
    ['warnings', () => memoryStore({ warnings: map })],
    ['a list', () => list(map)],
    ['headers', () => shadow({ body: 'x', headers: map })],
  ])('a Map in place of an object is rejected, as its entries would be ignored: %s', (_, make) => {
    expect(make).toThrow(/expected .*, got a Map/)
  })
})
