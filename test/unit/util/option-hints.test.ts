import { createLimiter, list, memoryStore, redisStore, shadow, slidingLog } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { describe, expect, test } from 'vitest'

type Anything = never

/** The part of an error's message that says what to use instead of an unknown option. */
function hintOf(make: () => unknown): string | undefined {
  try {
    make()
  } catch (error) {
    // The options are listed where there is no hint.
    return /: unknown option(?:: (.*)| \(the options are .*\)), got /.exec((error as Error).message)?.[1]
  }
  throw new Error('expected an error')
}

describe('an option of another library is answered by what to use instead', () => {
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
    ['blockDuration', "use limiter.block(identity, { for: '1h' })"],
    ['allowList', 'use allow, such as ipRanges([…]) or a function of the request'],
    ['blacklist', 'use deny, such as ipRanges([…]) or a function of the request'],
    ['db', 'use store: redisStore(client)'],
    ['driver', 'use store: redisStore(client)'],
    ['skipOnError', "use unavailable: { decide: 'allow' }"],
    ['delayAfter', 'use respond: delay({ … })'],
  ])('%s', (option, hint) => {
    expect(hintOf(() => rateLimit({ ...base, [option]: 5 } as Anything))).toBe(hint)
  })

  test('unless what replaces it is no option there either', () => {
    expect(hintOf(() => slidingLog({ limit: 5, window: '1m', skipFailedRequests: true } as Anything))).toBeUndefined()
  })
})

describe('an earlier name of an option is answered by its name', () => {
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
  ])('%s', (_, make, hint) => {
    expect(hintOf(make)).toBe(hint)
  })

  test.each(['success', 'failure'])('count: %s', (outcome) => {
    expect(() => rateLimit({ ...base, count: outcome } as Anything)).toThrow(`such as { only: "${outcome}" }`)
  })
})

describe('a misspelt option is answered by the nearest one', () => {
  test.each<[string, () => unknown, string]>([
    ['a letter too few', () => createLimiter({ limt: 5, window: '1m' } as Anything), 'did you mean limit?'],
    ['two letters swapped', () => createLimiter({ limit: 5, widnow: '1m' } as Anything), 'did you mean window?'],
    ['other case', () => rateLimit({ limit: 5, window: '1m', onverdict() {} } as Anything), 'did you mean onVerdict?'],
    ['a store', () => redisStore({} as Anything, { timeOut: 5 } as Anything), 'did you mean timeout?'],
  ])('%s', (_, make, hint) => {
    expect(hintOf(make)).toBe(hint)
  })

  test('but not by one that is far', () => {
    expect(hintOf(() => createLimiter({ limit: 5, window: '1m', colour: 'red' } as Anything))).toBeUndefined()
  })
})

describe('an option of the other store is answered by why there is none', () => {
  test.each([
    ['prefix', /it is for redisStore, as a memory store shares its keys with nobody .*; leave it out here/],
    ['timeout', /it is for redisStore, as a memory store asks no server; leave it out here/],
  ])('memoryStore: %s', (option, hint) => {
    expect(hintOf(() => memoryStore({ [option]: 5 } as Anything))).toMatch(hint)
  })

  test('redisStore: maxKeys', () => {
    expect(hintOf(() => redisStore({} as Anything, { maxKeys: 5 } as Anything))).toBe(
      'it is for memoryStore; the room of Redis is its maxmemory',
    )
  })
})

describe('a Map in place of an object is rejected, as its entries would be silently ignored:', () => {
  const map = new Map<string, unknown>([['maxKeys', 5]]) as Anything
  test.each<[string, () => unknown]>([
    ['options of a store', () => memoryStore(map)],
    ['options of a middleware', () => rateLimit(map)],
    ['policies', () => rateLimit({ policies: map })],
    ['tiers', () => createLimiter({ tiers: map, tier: () => 'free' } as Anything)],
    ['warnings', () => memoryStore({ warnings: map })],
    ['a list', () => list(map)],
    ['headers', () => shadow({ body: 'x', headers: map })],
  ])('%s', (_, make) => {
    expect(make).toThrow(/expected .*, got a Map/)
  })
})
