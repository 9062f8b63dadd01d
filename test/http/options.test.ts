import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeFastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { whilePolluted } from '../support/polluted.js'

const free = (): string => 'free'

const MAKERS: Record<string, (options: never) => unknown> = {
  Express: express.rateLimit,
  Koa: koa.rateLimit,
  Fastify: async (options: never) => {
    await makeFastify().register(fastify.rateLimit, options)
  },
}

describe.each(Object.entries(MAKERS))('%s: options', (_name, make) => {
  test.each([
    ['no limit', {}, /policy "default": limit: expected a limit and a window/],
    ['a misspelt option', { limit: 1, windowMs: 1000 }, /windowMs: unknown option: use window, /],
    [
      'a misspelt duration',
      { name: 'login', limit: 1, window: '1 minuite' },
      /policy "login": window: .* got "1 minuite"/,
    ],
    ['a name that could break a header', { name: 'a"\r\nb', limit: 1, window: 1 }, /name: expected 1 to 64 letters/],
    ['a fractional limit', { limit: 1.5, window: 1000 }, /limit: expected a whole number/],
    ['a negative cost', { limit: 1, window: 1000, cost: -1 }, /cost: expected a whole number of at least 0, got -1/],
    ['a cost in words', { limit: 1, window: 1000, cost: 'two' }, /cost: expected/],
    ['a skip that is not a function', { limit: 1, window: 1000, skip: true }, /skip: expected a function/],
    ['an invalid responder', { limit: 1, window: 1000, respond: 429 }, /respond: expected a responder/],
    ['an invalid store', { limit: 1, window: 1000, store: {} }, /store: expected memoryStore\(\)/],
    [
      'a count that is not an object',
      { limit: 1, window: 1000, count: true },
      /count: expected \{ only, within \}, such as \{ only: "failure" \}, got true/,
    ],
    [
      'a count beside charged refusals',
      { limit: 1, window: 1000, onDeny: 'charge', count: { only: 'failure' } },
      /count: expected none beside onDeny: "charge", got an object: leave out count, or onDeny: "charge"/,
    ],
    [
      'a count without only',
      { limit: 1, window: 1000, count: 'failures' },
      /count: expected \{ only, within \}, such as \{ only: "failures" \}, got "failures"/,
    ],
    [
      'requireLength without a maximum',
      { limit: 1, window: 1000, body: { requireLength: true } },
      /body: max: expected a whole number of at least 0, got undefined/,
    ],
    [
      'a ban.count that is a status',
      { limit: 1, window: 1000, ban: { after: 2, within: '1h', for: ['1h'], count: 401 } },
      /ban: count: expected \{ only \}, such as \{ only: 401 \}, got 401/,
    ],
    [
      'a status in count.only that there is not',
      { limit: 1, window: 1000, count: { only: 99 } },
      /count: only: expected "success", "failure", a status such as 401, or a function, got 99/,
    ],
    [
      'count.within without only',
      { limit: 1, window: 1000, count: { within: '1s' } },
      /count: only: expected "success", "failure", a status such as 401, or a function/,
    ],
    [
      'a misspelt duration of count.within',
      { limit: 1, window: 1000, count: { only: () => true, within: 'long' } },
      /policy "default": count: within: expected whole milliseconds/,
    ],
    ['a body.max in words', { limit: 1, window: 1000, body: { max: '1mb' } }, /body: max: expected a whole number/],
    [
      'a limit of bytes without body.max',
      { limits: [express.gcra({ limit: 1, window: 1000, unit: 'content-bytes' })] },
      /body: expected \{ max \}, the bytes of a request of unknown length/,
    ],
    [
      'a limit of response bytes beside count',
      { limits: [express.gcra({ limit: 1, window: 1000, unit: 'response-bytes' })], count: { only: 'failure' } },
      /count: expected none beside a limit of response-bytes, .*: use two limiters/,
    ],
    [
      'onExhausted without a limit of response bytes',
      { limit: 1, window: 1000, onExhausted: 'cut' },
      /onExhausted: expected none without a limit of response-bytes/,
    ],
    [
      'an unknown onExhausted',
      { limits: [express.gcra({ limit: 1, window: 1000, unit: 'response-bytes' })], onExhausted: 'end' },
      /onExhausted: expected "cut" or "finish", got "end"/,
    ],
    [
      'an unknown value of anonymous',
      { limit: 1, window: 1000, anonymous: 'ip' },
      /anonymous: expected "error" or "by-ip" or "skip", got "ip"/,
    ],
    ['tiers without a tier', { tiers: { free: [express.perMinute(1)] } }, /tier: expected a function/],
    [
      'a tier without tiers',
      { limit: 1, window: 1000, tier: free },
      /tier: expected none without tiers, got a function: add tiers, or leave out tier/,
    ],
    ['a tier of no limits', { tiers: { free: [] }, tier: free }, /limits: expected an array of 1 to 32 limits/],
    ['no tiers', { tiers: {}, tier: free }, /tiers: expected an object of limits by tier/],
    [
      'a tier that could break a key',
      { tiers: { 'a:b': [express.perMinute(1)] }, tier: free },
      /name: expected 1 to 64 letters/,
    ],
    [
      'a priority by tier without tiers',
      { limit: 1, window: 1000, priority: { pro: 1 } },
      /priority: expected a function/,
    ],
    [
      'a priority in words',
      { tiers: { pro: [express.perMinute(1)] }, tier: free, priority: { pro: 'high' } },
      /priority\[pro\]: expected a finite number, got "high"/,
    ],
    [
      'a reserve without priority',
      { limits: [express.perMinute(10, { reserve: 0.5 })] },
      /priority: expected one beside reserve/,
    ],
    [
      'a reserve beside charged refusals',
      { limits: [express.perMinute(10, { reserve: 0.5 })], priority: () => 1, onDeny: 'charge' },
      /reserve: expected none beside onDeny/,
    ],
    ['a key that is not a function', { limit: 1, window: 1000, key: 'ip' }, /key: expected a function/],
  ])('the limiter rejects %s when it is made', async (_what, options, message) => {
    const error = await Promise.resolve()
      .then(() => make(options as never))
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'INVALID_POLICY', message: expect.stringMatching(message) })
  })

  test('the limiter rejects options while Object.prototype has the name of one', async () => {
    const error = await whilePolluted(
      'skip',
      () => true,
      () => make({ limit: 1, window: '1m' } as never),
    ).catch((error: unknown) => error)
    expect(error).toMatchObject({
      code: 'INVALID_POLICY',
      message: expect.stringContaining('skip: expected no property of this name on Object.prototype'),
    })
  })
})

test.each([
  ['global', false],
  ['rateLimit', false],
])('in Fastify the plugin rejects options while Object.prototype has %s', async (name, value) => {
  const make = async () => {
    await makeFastify().register(fastify.rateLimit, { limit: 1, window: '1m' })
  }
  await expect(whilePolluted(name, value, make)).rejects.toThrow(`rateLimit: ${name}: expected no property`)
})

describe('options of reject', () => {
  test.each([[{ status: 200 }], [{ status: '429' }], [{ body: 5 }], [{ body: null }], [{ message: 'no' }], [null]])(
    'reject rejects the options %o',
    (options) => {
      expect(() => express.reject(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
    },
  )
})

test('every middleware has its name and its limiter', async () => {
  for (const { rateLimit } of [express, koa]) {
    const middleware = rateLimit({ name: 'api', limit: 1, window: '1s' })
    expect(middleware.name).toBe('rateLimit')
    expect(middleware.limiter.name).toBe('api')
  }
  const app = makeFastify()
  await app.register(fastify.rateLimit, { global: false })
  expect(app.rateLimit({ name: 'api', limit: 1, window: '1s' }).name).toBe('rateLimit')
  expect(app.rateLimit({ name: 'api', limit: 1, window: '1s' }).limiter.name).toBe('api')
})
