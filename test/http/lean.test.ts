import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  byHeader,
  concurrency,
  createLimiter,
  gcra,
  type Limit,
  leakyBucket,
  list,
  memoryStore,
  queue,
  type Responder,
  SluiceError,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import {
  bans,
  charges,
  type LeanFeature,
  lists,
  meters,
  outcomes,
  queues,
  relaxed,
  responseBytes,
} from '@sluice/core/features'
import { RATE_LIMIT_OPTIONS } from '@sluice/core/http'
import { withFeatures } from '@sluice/express/lean'
import { withFeatures as withFeaturesOfFastify } from '@sluice/fastify/lean'
import { withFeatures as withFeaturesOfKoa } from '@sluice/koa/lean'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const closing = closedAfterEach()
const ALL = [bans, charges, lists, meters, outcomes, queues, relaxed, responseBytes] as const
const ban = { after: 2, within: '1h', for: ['1h', '2h'] } as const
const key = byHeader('x-key')

const statusOf = async (url: string, of = 'a') => (await fetch(url, { headers: { 'x-key': of } })).status

/** Starts a server of any framework. Resolves to its URL. */
async function listening(app: { listen(port: number): Server }): Promise<string> {
  const server = app.listen(0)
  closing.push(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe('each framework, with bans and outcomes alone', () => {
  const options = { limit: 1, window: '1h', key, ban } as const

  test('Express', async () => {
    const { rateLimit } = withFeatures(bans, outcomes)
    const limiter = rateLimit(options)
    const app = express().use(limiter, (_req, res) => void res.send('welcome'))
    const url = await listening(app)
    expect([await statusOf(url), await statusOf(url), await statusOf(url), await statusOf(url, 'b')]).toEqual([
      200, 429, 429, 200,
    ])
    expect((await limiter.limiter.peek({ 'header:x-key': 'a' })).reason).toBe('banned')
    await limiter.limiter.unblock({ 'header:x-key': 'a' })
    expect((await limiter.limiter.peek({ 'header:x-key': 'a' })).reason).toBe('limited')
  })

  test('Koa', async () => {
    const { rateLimit } = withFeaturesOfKoa(bans, outcomes)
    const limiter = rateLimit({ ...options, ban: undefined, count: { only: 'failure' } })
    const app = new Koa().use(limiter).use((ctx) => {
      ctx.status = ctx.get('x-key') === 'wrong' ? 401 : 200
    })
    const url = await listening(app)
    const statuses: number[] = []
    for (const of of ['a', 'a', 'a', 'wrong', 'wrong']) statuses.push(await statusOf(url, of))
    expect(statuses).toEqual([200, 200, 200, 401, 429])
  })

  test('Fastify', async () => {
    const { rateLimit } = withFeaturesOfFastify(bans, outcomes)
    const limiter = rateLimit(options)
    const app = fastify()
    app.addHook('onRequest', limiter)
    app.get('/', async () => 'welcome')
    closing.push(() => app.close())
    const url = await app.listen({ port: 0 })
    expect([await statusOf(url), await statusOf(url), await statusOf(url)]).toEqual([200, 429, 429])
    expect((await limiter.limiter.peek({ 'header:x-key': 'a' })).reason).toBe('banned')
  })
})

describe('what needs a feature that is not there', () => {
  const { createLimiter: limiterOf, rateLimit, memoryStore: storeOf } = withFeatures()
  const some = { limit: 1, window: '1h' } as const
  const make = (options: object) => () => limiterOf({ ...some, ...options } as never)
  const makeGuard = (options: object) => () => rateLimit({ ...some, ...options } as never)

  test.each<[string, object, string]>([
    ['ban', { ban }, 'bans'],
    ['charges', { charges: { keep: '1h' } }, 'charges'],
    ['consistency', { consistency: { syncEvery: '1s' } }, 'relaxed'],
    ['sharedTurns', { sharedTurns: true }, 'queues'],
    ['allow', { allow: list({ ip: ['192.0.2.1'] }) }, 'lists'],
    ['deny', { deny: list({ ip: ['192.0.2.1'] }) }, 'lists'],
    ['count', { count: { only: 'failure' } }, 'outcomes'],
    ['body', { body: { max: 1 } }, 'outcomes'],
    ['onExhausted', { onExhausted: 'cut' }, 'responseBytes'],
  ])('the option %s names the feature, with HTTP and without', (option, options, feature) => {
    const says = `${option}: unknown option: add the feature: withFeatures(${feature})`
    expect(makeGuard(options)).toThrow(says)
    expect(make(options)).toThrow(says)
  })

  test.each<[string, object, string]>([
    ['a limit that books turns', { limits: [leakyBucket({ leak: 1, every: '1s', queue: true })] }, 'queues'],
    ['bytes of bodies', { limits: [gcra({ ...some, unit: 'content-bytes' })] }, 'outcomes'],
    ['bytes of responses', { limits: [gcra({ ...some, unit: 'response-bytes' })] }, 'responseBytes'],
    ['lists of a store', { store: memoryStore({ deny: list({ ip: ['192.0.2.1'] }) }) }, 'lists'],
  ])('%s', (_, options, feature) => {
    const alone = 'limits' in options ? { limit: undefined, window: undefined } : {}
    const says = `add the feature: withFeatures(${feature})`
    expect(makeGuard({ ...alone, ...options })).toThrow(says)
    expect(make({ ...alone, ...options })).toThrow(says)
  })

  test('a responder that queues', () => {
    expect(makeGuard({ respond: queue() })).toThrow('respond: queue: add the feature: withFeatures(queues)')
  })

  test('a responder of your own that waits', async () => {
    const respond: Responder = (refused) =>
      refused.waitTurn({ maxWaitMs: 1, headStartMs: 0 }).then(
        () => 'proceed',
        (error) => ({ status: 429, headers: [], body: String(error), showsQuota: false }),
      )
    const app = express().use(rateLimit({ ...some, respond }), (_req, res) => void res.send('welcome'))
    const url = await listening(app)
    expect(await statusOf(url)).toBe(200)
    const refused = await fetch(url)
    expect(await refused.text()).toContain('respond: waitTurn: add the feature: withFeatures(queues)')
  })

  test.each([
    ['acquire', 'queues'],
    ['block', 'bans'],
    ['unblock', 'bans'],
    ['strike', 'bans'],
  ])('the method %s', (method, feature) => {
    const limiter = limiterOf(some) as unknown as Record<string, () => unknown>
    expect(() => limiter[method]?.()).toThrow(`limiter: ${method}: add the feature: withFeatures(${feature})`)
  })

  test('meters, and blocks of a store', async () => {
    const verdict = await limiterOf(some).consume('a')
    expect(() => verdict.meter('requests')).toThrow('meter: expected a limiter with meters')
    const onStore = createLimiter({ store: storeOf(), limit: 1, window: '1h' })
    await expect(onStore.block('a', { for: '1s' })).rejects.toThrow('expected one that blocks, by store[BANS]')
    expect(() => storeOf({ persist: 'blocks.json' } as never)).toThrow('persist: unknown option: take memoryStore of')
  })

  test('what is no feature', () => {
    expect(() => withFeatures({} as LeanFeature)).toThrow('withFeatures: expected features, such as bans')
  })
})

test('every option of rateLimit is one of the core, or has words for its feature', () => {
  const core = withFeatures()
  for (const option of RATE_LIMIT_OPTIONS) {
    let message = ''
    try {
      core.rateLimit({ limit: 1, window: '1h', [option]: 'wrong' } as never)
    } catch (error) {
      message = (error as Error).message
    }
    if (message.includes('unknown option') && option !== 'policies') {
      expect(message).toMatch(/unknown option: add the feature: withFeatures\(\w+\)/)
    }
  }
})

test('a store with offenders counts refusals', async () => {
  const store = memoryStore({ offenders: true })
  const limiter = withFeatures().createLimiter({ name: 'api', limit: 0, window: '1h', store })
  await limiter.consume('a')
  expect(await store.offenders({ policy: 'api' })).toMatchObject({ offenders: [{ value: 'a' }] })
})

test('a store that is away is replaced by one of this process', async () => {
  const { createLimiter: limiterOf, memoryStore: storeOf } = withFeatures()
  const store = Object.assign(storeOf(), {
    decide: () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'away')),
  })
  const limiter = limiterOf({ limit: 1, window: '1h', store })
  const verdicts = [await limiter.consume('a'), await limiter.consume('a')]
  expect(verdicts).toMatchObject([
    { kind: 'unavailable', allowed: true },
    { kind: 'unavailable', allowed: false },
  ])
})

/** What a limiter of each composition is asked. */
interface Asked {
  consume(subject: string, options: { readonly cost: number }): Promise<Verdict>
  refund(subject: string, verdict: Verdict): Promise<boolean>
  reset(subject: string): Promise<void>
  block(identity: string, options: { readonly for: number }): Promise<void>
  unblock(identity: string): Promise<void>
  strike(identity: string): Promise<unknown>
}

/** Numbers from 0 to below `n`, the same for each seed. */
function drawnFrom(seed: number) {
  let state = seed
  return (n: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % n
  }
}

describe('the same as with all features', () => {
  const sets: readonly [string, readonly LeanFeature[], object][] = [
    ['bans', [bans], { ban }],
    ['bans and charges', [charges, bans], { ban, charges: { keep: '1h' } }],
    ['all', ALL, { ban, charges: { keep: '1h' } }],
  ]
  const limits: readonly [string, Limit][] = [
    ['a log', slidingLog({ limit: 3, window: 10_000 })],
    ['a bucket', gcra({ limit: 3, window: 10_000 })],
    ['permits', concurrency({ limit: 3, ttl: 10_000 })],
  ]
  test.each(
    sets.flatMap(([name, features, options]) =>
      limits.map(([kind, limit]) => [name, kind, features, options, limit] as const),
    ),
  )('%s, %s', async (_name, _kind, features, options, limit) => {
    for (let seed = 1; seed <= 20; seed++) {
      const draw = drawnFrom(seed)
      const time = { now: 20_000 * 86_400_000 }
      const clock = () => time.now
      const lean = withFeatures(...features)
      const given = { name: 'lean', limits: [limit], ...options }
      const both = [
        lean.createLimiter({ ...given, store: lean.memoryStore({ clock }) } as never),
        createLimiter({ ...given, store: memoryStore({ clock }) } as never),
      ] as unknown as [Asked, Asked]
      const verdicts: [Verdict, Verdict][] = []
      for (let step = 0; step < 60; step++) {
        const subject = `k${draw(2)}`
        const op = draw(10)
        const by = draw(4000)
        const cost = draw(3)
        const known = verdicts[draw(Math.max(1, verdicts.length))]
        const results = await Promise.all(
          both.map(async (limiter, i): Promise<unknown> => {
            if (op < 5) return limiter.consume(subject, { cost })
            if (op === 5) return known && limiter.refund(subject, known[i] as Verdict).catch(String)
            if (op === 6) return limiter.reset(subject)
            if (op === 7) return limiter.block(subject, { for: 5000 })
            if (op === 8) return limiter.unblock(subject)
            return limiter.strike(subject)
          }),
        )
        if (op < 5) verdicts.push(results as [Verdict, Verdict])
        const shown = results.map((result) =>
          JSON.stringify(result, (name, value) => (name === 'id' ? undefined : value)),
        )
        expect(shown[0], `seed ${seed}, step ${step}`).toBe(shown[1])
        time.now += by
      }
    }
  })
})
