import {
  concurrency,
  fixedWindow,
  gcra,
  type HttpContext,
  type Limit,
  memoryStore,
  perMinute,
  tokenBucket,
} from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { type AnyOptions, type RunningApp, run } from './support/app.js'
import { appsByEffort } from './support/by-effort.js'
import { FRAMEWORKS } from './support/frameworks.js'

const HEADERS = new URL('../../packages/core/src/http/headers/by-unit.ts', import.meta.url).pathname

const running: RunningApp[] = []
afterEach(() => Promise.all(running.splice(0).map((app) => app.close())))

// biome-ignore lint/suspicious/noExplicitAny: limits without functions fit every kind of request
const PLAN: Limit<any>[] = [
  perMinute(5),
  tokenBucket({ name: 'tokens', unit: 'tokens', refill: 100, every: '1m' }),
  fixedWindow({ name: 'cents', unit: 'cents', limit: 9, window: '1h' }),
]
const tokensOf = (_request: unknown, context: HttpContext) => Number(context.header('x-tokens') ?? 1)

describe.each(Object.entries(appsByEffort(FRAMEWORKS)))('%s', (_name, factory) => {
  const start = async (options: AnyOptions) => {
    const store = memoryStore({ clock: new Clock().read })
    const limiters = [{ name: 'chat', store, ...options } as AnyOptions]
    const app = await run(factory, { routes: { '/': { limiters } } })
    running.push(app)
    return (tokens: number) => request(app.server).get('/').set('x-tokens', String(tokens))
  }
  const quotas = '"chat-1m";q=5;w=60, "tokens";q=100;qu="tokens";w=60, "cents";q=9;qu="cents";w=3600'

  test.each<[string, AnyOptions['cost']]>([
    ['an object', { tokens: tokensOf, cents: 3 }],
    ['an object with late functions', { tokens: async (one, context) => tokensOf(one, context), cents: async () => 3 }],
    ['a function', (one, context) => ({ tokens: tokensOf(one, context), cents: 3 })],
    ['a late function', async (one, context) => ({ tokens: async () => tokensOf(one, context), cents: 3 })],
  ])('%s charges each unit, all or none', async (_what, cost) => {
    const chat = await start({ limits: PLAN, cost })
    const first = await chat(60)
    expect([first.status, first.headers['ratelimit-policy']]).toEqual([200, quotas])
    expect(first.headers.ratelimit).toBe('"chat-1m";r=4;t=60, "tokens";r=40;t=36, "cents";r=6;t=3600')
    const second = await chat(41)
    expect(second.status).toBe(429)
    expect(JSON.parse(second.text)['violated-policies']).toEqual(['tokens'])
    expect(second.headers['retry-after']).toBe('1')
    expect((await chat(40)).headers.ratelimit).toBe('"chat-1m";r=3;t=60, "tokens";r=0;t=60, "cents";r=3;t=3600')
  })

  test('a wrong amount of a request is answered 400, and charges no unit', async () => {
    const chat = await start({ limits: PLAN, cost: { tokens: tokensOf } })
    for (const tokens of [-1, 1.5, Number.NaN, 1e300]) expect((await chat(tokens)).status).toBe(400)
    expect((await chat(10)).headers.ratelimit).toContain('"chat-1m";r=4;t=60, "tokens";r=90;t=6')
  })

  test.each<[string, AnyOptions['cost']]>([
    ['a unit that no limit counts', () => ({ token: 5 })],
    ['an amount that is no number', () => ({ tokens: 'many' }) as never],
    [
      'a getter that throws',
      () => Object.defineProperty({}, 'tokens', { enumerable: true, get: () => JSON.parse('{') }),
    ],
  ])('%s is the mistake of the function', async (_what, cost) => {
    const chat = await start({ limits: PLAN, cost })
    expect((await chat(1)).status).toBe(500)
  })

  test('forms with one limit show requests, and on a refusal the limit that refused', async () => {
    const chat = await start({ limits: PLAN, cost: { tokens: tokensOf, cents: 0 }, headers: 'draft-6' })
    expect((await chat(90)).headers).toMatchObject({ 'ratelimit-limit': '5', 'ratelimit-remaining': '4' })
    expect((await chat(90)).headers).toMatchObject({ 'ratelimit-limit': '100', 'ratelimit-remaining': '10' })
  })

  test('headers of services of language models have requests and tokens, and the wait in ms', async () => {
    const headers = ['openai', 'anthropic'] as const
    const chat = await start({ limits: PLAN, cost: { tokens: tokensOf, cents: 0 }, headers })
    expect((await chat(90)).headers).toMatchObject({
      'x-ratelimit-limit-requests': '5',
      'x-ratelimit-remaining-requests': '4',
      'x-ratelimit-reset-requests': '1m0s',
      'x-ratelimit-limit-tokens': '100',
      'x-ratelimit-remaining-tokens': '10',
      'x-ratelimit-reset-tokens': '54s',
      'anthropic-ratelimit-requests-limit': '5',
      'anthropic-ratelimit-tokens-remaining': '10',
      'anthropic-ratelimit-tokens-reset': expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    })
    const refused = await chat(12)
    expect([refused.status, refused.headers['retry-after-ms'], refused.headers['retry-after']]).toEqual([
      429,
      '1200',
      '2',
    ])
    expect(refused.headers['x-ratelimit-remaining-requests']).toBe('4')
  })

  test('a cost of 5 takes one permit', async () => {
    const chat = await start({ limits: [perMinute(9), concurrency({ limit: 1 })], cost: 5 })
    expect((await chat(1)).status).toBe(200)
  })

  test('policies of a document with costs by unit are decided together, each by its own', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: {
          chat: {
            limits: [
              { limit: 9, window: '1m', name: 'a' },
              { algorithm: 'gcra', unit: 'tokens', limit: 100, window: '1m', name: 'b' },
            ],
            cost: { tokens: 'tokens', requests: 2 },
          },
          all: { limits: [{ limit: 5, window: '1m' }] },
          budget: {
            limits: [{ algorithm: 'fixedWindow', unit: 'tokens', limit: 50, window: '1h' }],
            cost: { tokens: 7 },
          },
        },
      },
      costs: { tokens: async (one, context) => tokensOf(one, context as never) },
    })
    const chat = await start({ limits: undefined, policies: loaded, name: undefined })
    expect((await chat(30)).headers.ratelimit).toBe(
      '"chat-a";r=7;t=60, "chat-b";r=70;t=18, "all";r=4;t=60, "budget";r=43;t=3600',
    )
    expect((await chat(-1)).status).toBe(400)
    const refused = await chat(71)
    expect([refused.status, refused.headers.ratelimit]).toEqual([
      429,
      '"chat-a";r=7;t=60, "chat-b";r=70;t=1, "all";r=4;t=60, "budget";r=43;t=3600',
    ])
    await loaded.close()
  })
})

test.each([
  [0, '0ms'],
  [20, '20ms'],
  [1500, '1.5s'],
  [60_000, '1m0s'],
  [360_000, '6m0s'],
  [3_723_004, '1h2m3.004s'],
  [86_400_000, '24h0m0s'],
])('%i ms are written as %s', async (ms, text) => {
  const { shortDuration } = await import(HEADERS)
  expect(shortDuration(ms)).toBe(text)
})

describe('a limiter with units rejects', () => {
  const limits = [perMinute(5), gcra({ unit: 'tokens', limit: 9, window: '1m' })]
  test.each<[string, object, string]>([
    ['no cost', {}, 'policy "chat": cost: expected one that names tokens, as a limit counts them, got undefined'],
    [
      'a unit that no limit counts',
      { cost: { token: 1 } },
      'policy "chat": cost: expected units that limits count, "requests" or "tokens", got "token"',
    ],
    [
      'bytes',
      { cost: { 'response-bytes': 1 } },
      'policy "chat": cost: expected no bytes, which are measured, got "response-bytes"',
    ],
    [
      'a wrong amount',
      { cost: { tokens: -1 } },
      'policy "chat": cost: tokens: expected a whole number of at least 0, got -1',
    ],
    [
      'what is no cost',
      { cost: [1] },
      'policy "chat": cost: expected a whole number of at least 0, such numbers by unit, or a function',
    ],
    [
      'a number of nothing',
      { limits: limits.slice(1), cost: 5 },
      'policy "chat": cost: expected units by name, such as { "tokens": 5 }',
    ],
  ])('%s', (_what, options, message) => {
    expect(() => rateLimit({ name: 'chat', limits, ...options } as never)).toThrow(message)
  })
})

test('a document rejects costs of units that its limits do not count', async () => {
  const object = {
    version: 1,
    policies: { chat: { limits: [{ limit: 9, window: '1m', unit: 'tokens' }], cost: { cents: 3, 'no/unit': 1 } } },
  }
  await expect(policies.from({ object })).rejects.toThrow(
    'policies.chat.cost["no/unit"]: wrong name: expected a unit: 1 to 32',
  )
  object.policies.chat.cost = { cents: 3 } as never
  await expect(policies.from({ object })).rejects.toThrow(
    'policies.chat.cost.cents: expected a unit that its limits count, "tokens"',
  )
})
