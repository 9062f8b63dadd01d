// Runs alone: it reads the figures of all stores of its process.
import { memoryStore, redisStore, type Store } from '@sluice/core'
import { limitedFetch } from '@sluice/fetch'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import type { FiguresAnswer, HistoryAnswer } from '../../packages/console/src/figures/answers.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'
import { ask, asOperator, startConsole, withBody } from './support.js'

const open = closedAfterEach()
const { server: redis, client } = await redisForTests()
const url = 'http://service.test/'
const quota = (remaining: number) => ({
  RateLimit: `"day";r=${remaining};t=60`,
  'RateLimit-Policy': '"day";q=50;w=60',
})

async function served(store: Store) {
  const port = await startConsole({ store }, open)
  return {
    live: async (): Promise<FiguresAnswer> =>
      (await ask(port, '/sluice/api/figures', { headers: asOperator(port) })).json,
    async lastMinutes(): Promise<HistoryAnswer> {
      const now = Date.now()
      const body = { from: now - 120_000, to: now + 60_000, step: 'minute' }
      return (await ask(port, '/sluice/api/figures/history', { headers: withBody(port), body })).json
    },
  }
}

/** The responses to the calls of a policy, by their outcomes. */
function responsesOf(policy: string, { responses }: HistoryAnswer): Record<string, number> {
  const own = responses.filter((row) => row.policy === policy)
  return Object.fromEntries(own.map(({ outcome, counts }) => [outcome, counts.reduce((sum, count) => sum + count, 0)]))
}

const STORES: Readonly<Record<string, () => Store>> = {
  memory: memoryStore,
  Redis() {
    const own = new Redis(redis.port)
    const store = redisStore(own, { timeout: 10_000, prefix: 'outbound:' })
    open.push(
      () => own.disconnect(),
      () => store.close(),
    )
    return store
  },
}

/** The console serves 600 requests a minute. */
const SELDOM = { everyMs: 200 }

test('a process without calls to other services reports none', async () => {
  const { live } = await served(memoryStore())
  const { sum } = await until('it reports', async () => {
    const figures = await live()
    return figures.processCount > 0 && figures
  })
  expect(sum.outbound).toEqual([])
})

describe.each(Object.entries(STORES))('on %s', (name, storeOf) => {
  test('the console has the responses of other services, their holds, and the limits that they tell', async () => {
    const policy = `partner-${name}`
    const responses = [
      () => new Response(null, { headers: quota(41) }),
      () => new Response(null, { headers: quota(40) }),
      () => Promise.reject(new TypeError('fetch failed')),
      () => Response.json({ error: 'insufficient_quota' }, { status: 429 }),
      () => new Response(null, { status: 429, headers: { 'Retry-After': '60' } }),
    ]
    const store = storeOf()
    const { live, lastMinutes } = await served(store)
    const api = limitedFetch(async () => (await responses.shift()?.()) as Response, {
      name: policy,
      store,
      kindOf: ({ headers }) => (headers.has('content-type') ? 'final' : undefined),
    })
    const before = Date.now()
    for (let i = 0; i < 5; i++) await api(url).catch(() => {})
    const rowOf = async () => (await live()).sum.outbound.find((row) => row.policy === policy)
    const row = await until(
      'it is held',
      async () => {
        const found = await rowOf()
        return found?.heldUntil && found
      },
      SELDOM,
    )
    const isIn60s = (at: number | null | undefined) => {
      expect(at).toBeGreaterThan(before + 55_000)
      expect(at).toBeLessThan(Date.now() + 65_000)
    }
    isIn60s(row.heldUntil)
    expect(row.quotas).toEqual([expect.objectContaining({ limit: 'day', unit: 'requests', units: 50, remaining: 40 })])
    isIn60s(row.quotas[0]?.resetAt)
    await until('all are counted', async () => responsesOf(policy, await lastMinutes()).refused === 1, SELDOM)
    const history = await lastMinutes()
    expect(responsesOf(policy, history)).toEqual({ accepted: 2, refused: 1, final: 1, failed: 1 })
    // They are no decisions.
    expect(history.notes).toEqual([])
    expect((await live()).notes).toEqual([])
  })
})

test('units of a limit are not known once they are back', async () => {
  const store = memoryStore()
  const { live } = await served(store)
  const headers = { RateLimit: '"second";r=7;t=1', 'RateLimit-Policy': '"second";q=9;w=1' }
  await limitedFetch(async () => new Response(null, { headers }), { name: 'brief', store })(url)
  const seen = new Set<unknown>()
  await until(
    'they are back',
    async () => {
      const [found] = (await live()).sum.outbound.flatMap(({ policy, quotas }) => (policy === 'brief' ? quotas : []))
      seen.add(found?.remaining)
      return found?.units === 9 && found.remaining === null
    },
    SELDOM,
  )
  expect([...seen].filter((remaining) => ![undefined, null, 7].includes(remaining as never))).toEqual([])
})

test('outcomes of a later version are left out, and a note says so', async () => {
  const store = (STORES.Redis as () => Store)()
  const { lastMinutes } = await served(store)
  const minute = Math.floor((await redis.now()) / 60_000)
  await client.zadd(`outbound:v1:{figures}:m:${minute}`, 3, 'later||>z')
  const { notes, responses } = await lastMinutes()
  expect(notes).toEqual(['Counts that this version does not know are left out: 1.'])
  expect(responses.filter(({ policy }) => policy === 'later')).toEqual([])
})

test('many services that name their limits with many odd characters leave the figures readable', async () => {
  const store = memoryStore()
  const { live } = await served(store)
  const names = Array.from({ length: 25 }, (_, i) => `${i}\u0001${'\u0002<b>'.repeat(50)}`)
  const headers = { RateLimit: names.map((name) => `"${name}";r=1;t=60`).join(', ') }
  for (let i = 0; i < 90; i++) {
    await limitedFetch(async () => ({ status: 200, headers: new Map(Object.entries(headers)) }) as never, {
      name: `odd-${i}`,
      store,
    })(url)
  }
  const { sum, notes } = await until(
    'all report',
    async () => {
      const figures = await live()
      return figures.sum.outbound.filter(({ policy }) => policy.startsWith('odd-')).length >= 80 && figures
    },
    SELDOM,
  )
  expect(notes.filter((note) => /another version/.test(note))).toEqual([])
  const quotas = sum.outbound.flatMap((row) => row.quotas)
  expect(quotas.length).toBe(64)
  expect(Math.max(...quotas.map(({ limit }) => limit.length))).toBe(64)
})
