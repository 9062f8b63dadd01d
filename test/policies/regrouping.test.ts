import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { memoryStore, redisStore, type Store } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { client } = await redisForTests()
const stores: Record<string, () => Store> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(client, { timeout: 5000 }),
}

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
  await client.flushall()
})

const hour = (limit: number, more: object = {}) => ({ algorithm: 'slidingLog', limit, window: '1h', ...more })
const policy = (limit: number, more: object = {}) => ({
  key: 'ip',
  limits: [hour(limit)],
  respond: { queue: { maxWait: '12h' } },
  ...more,
})
/** Options with which a policy is decided after the others. */
const later = { deny: { ip: ['203.0.113.0/24'] } }
const reported = { enforce: { mode: 'report' } }

/** Policies that a test changes, and requests that wait for their limits. */
async function serviceOf(first: object, store: Store, tiers: Record<string, () => string> = {}) {
  const costs = {
    broken: () => {
      throw new Error('no cost')
    },
  }
  const terms = { store, policies: { tiers, costs } }
  const { loaded, guard, limiter, change } = await changingPolicies({ policies: first }, terms)
  open.push(() => loaded.close())
  open.push(() => (store as { close?: () => unknown }).close?.())
  return {
    limiter,
    async request() {
      const { proceed, reply } = await guard(contextOf({ ip: '192.0.2.1' }))
      return reply?.status ?? proceed
    },
    async change(next: object) {
      await change({ policies: next })
      await setImmediate()
    },
    async used(tier: string, limit: number) {
      const { remaining } = await limiter.peek({ ip: '192.0.2.1' }, { tier })
      return limit - remaining
    },
  }
}

/** Starts requests, and waits until they wait. */
async function queued(service: { request: () => Promise<unknown> }, count: number) {
  const all = Array.from({ length: count }, () => service.request())
  await sleep(50)
  return all
}

/** The number of promises that resolve to true: waits for so many, and a while for more. */
async function admittedOf(all: readonly Promise<unknown>[], expected: number) {
  let admitted = 0
  for (const each of all) {
    each.then(
      (proceed) => proceed === true && admitted++,
      () => {},
    )
  }
  await until(`${expected} are admitted`, () => admitted >= expected)
  await sleep(30)
  return admitted
}

describe.each(Object.entries(stores))(
  'requests that wait on %s when their policies are grouped anew',
  (_, makeStore) => {
    test('are not admitted beyond a policy that is decided later now', async () => {
      const service = await serviceOf({ all: policy(100), api: policy(1) }, makeStore())
      const all = await queued(service, 5)
      await service.change({ all: policy(100), api: policy(2, later) })
      expect(await admittedOf(all, 2)).toBe(2)
      expect(await service.used('api', 2)).toBe(2)
      await service.change({ all: policy(100), api: policy(5, later) })
      expect(await Promise.all(all)).toEqual([true, true, true, true, true])
      expect([await service.used('all', 100), await service.used('api', 5)]).toEqual([5, 5])
    })

    test('are charged once to a policy that is decided together with theirs now', async () => {
      const service = await serviceOf({ all: policy(100), api: policy(1, later) }, makeStore())
      const all = await queued(service, 5)
      await service.change({ all: policy(100), api: policy(3) })
      expect(await admittedOf(all, 3)).toBe(3)
      expect([await service.used('all', 100), await service.used('api', 3)]).toEqual([5, 3])
    })

    test('are charged once to a policy that came later before', async () => {
      const service = await serviceOf({ all: policy(1), api: policy(100, later) }, makeStore())
      const all = await queued(service, 5)
      await service.change({ all: policy(3), api: policy(100) })
      expect(await admittedOf(all, 3)).toBe(3)
      expect([await service.used('all', 3), await service.used('api', 100)]).toEqual([3, 3])
    })

    test('are charged to a policy that comes, also one of other units', async () => {
      const service = await serviceOf({ api: policy(1) }, makeStore())
      const all = await queued(service, 3)
      const tokens = { cost: { tokens: 2 }, limits: [hour(10, { unit: 'tokens' })] }
      await service.change({ api: policy(3), all: policy(10, tokens) })
      expect(await Promise.all(all)).toEqual([true, true, true])
      expect([await service.used('api', 3), await service.used('all', 10)]).toEqual([3, 4])
    })

    test('follow the tier of their client', async () => {
      let tier = 'free'
      const tiers = (paid: number) => ({
        api: { key: 'ip', tier: 'plan', tiers: { free: [hour(1)], paid: [hour(paid)] }, respond: policy(1).respond },
      })
      const service = await serviceOf(tiers(1), makeStore(), { plan: () => tier })
      const all = await queued(service, 3)
      tier = 'paid'
      await service.change(tiers(5))
      expect(await Promise.all(all)).toEqual([true, true, true])
      expect([await service.used('api.free', 1), await service.used('api.paid', 5)]).toEqual([1, 2])
    })

    test('proceed where their policy only reports now, and are charged to it', async () => {
      const service = await serviceOf({ all: policy(100), api: policy(1) }, makeStore())
      const all = await queued(service, 3)
      await service.change({ all: policy(100), api: policy(10, reported) })
      expect(await Promise.all(all)).toEqual([true, true, true])
      expect([await service.used('all', 100), await service.used('api', 10)]).toEqual([3, 3])
    })

    test('proceed where their only policy reports now', async () => {
      const service = await serviceOf({ api: policy(1) }, makeStore())
      const all = await queued(service, 3)
      await service.change({ api: policy(1, reported) })
      expect(await Promise.all(all)).toEqual([true, true, true])
    })

    test('are charged to every policy once, however these change', async () => {
      const names = ['a', 'b', 'c'] as const
      const anyPolicy = fc.record({ limit: fc.integer({ min: 1, max: 5 }), isLater: fc.boolean() })
      const anyPolicies = fc.record({ a: anyPolicy, b: anyPolicy, c: anyPolicy })
      const anySteps = fc.array(fc.record({ requests: fc.integer({ min: 0, max: 3 }), next: anyPolicies }), {
        minLength: 1,
        maxLength: 4,
      })
      const documentOf = (given: Record<string, { limit: number; isLater: boolean }>) =>
        Object.fromEntries(
          names.map((name) => [name, policy(given[name]?.limit ?? 0, given[name]?.isLater ? later : {})]),
        )
      await fc.assert(
        fc.asyncProperty(anyPolicies, anySteps, async (first, steps) => {
          await client.flushall()
          const service = await serviceOf(documentOf(first), makeStore())
          const all: Promise<unknown>[] = []
          for (const { requests, next } of steps) {
            all.push(...Array.from({ length: requests }, () => service.request()))
            await sleep(10)
            await service.change(documentOf(next))
          }
          const documents = [first, ...steps.map(({ next }) => next)]
          const most = names.map((name) => Math.max(...documents.map((each) => each[name].limit)))
          expect(await admittedOf(all, 0)).toBeLessThanOrEqual(Math.min(...most))
          let limit = 100
          const ends = Promise.all(all)
          // Again and again: on a busy machine, a request may not wait yet.
          await until('all have been admitted', async () => {
            const enough = { limit: ++limit, isLater: false }
            await service.change(documentOf({ a: enough, b: enough, c: enough }))
            return Promise.race([ends, sleep(20)])
          })
          expect(await ends).toEqual(all.map(() => true))
          for (const name of names) expect(await service.used(name, limit)).toBe(all.length)
        }),
        { numRuns: 15 },
      )
    }, 60_000)
  },
)

test('a request is charged to no policy where a later one fails, also after a wait', async () => {
  const service = await serviceOf({ all: policy(1) }, memoryStore())
  expect(await service.request()).toBe(true)
  const waiting = expect(service.request()).rejects.toThrow('no cost')
  await sleep(20)
  await service.change({ all: policy(5), api: policy(5, { cost: 'broken' }) })
  await waiting
  await expect(service.request()).rejects.toThrow('no cost')
  expect(await service.used('all', 5)).toBe(1)
})

describe('requests that wait when their key changes to one that they lack', () => {
  const of = (more: object) => ({ api: policy(1, { key: 'header:x-a', ...more }) })

  test('are invalid, as new ones are', async () => {
    const service = await serviceOf({ api: policy(1) }, memoryStore())
    const [first, ...waiting] = await queued(service, 3)
    expect(await first).toBe(true)
    await service.change(of({}))
    expect(await Promise.all(waiting)).toEqual([400, 400])
    expect(await service.request()).toBe(400)
  })

  test('proceed with anonymous: skip', async () => {
    const service = await serviceOf({ api: policy(1) }, memoryStore())
    const waiting = await queued(service, 3)
    await service.change(of({ anonymous: 'skip' }))
    expect(await Promise.all(waiting)).toEqual([true, true, true])
  })

  test('are counted by address with anonymous: by-ip', async () => {
    const service = await serviceOf({ api: policy(1) }, memoryStore())
    const waiting = await queued(service, 4)
    await service.change(of({ anonymous: 'by-ip', limits: [hour(2)] }))
    expect(await admittedOf(waiting, 3)).toBe(3)
  })
})

describe('calls of acquire that wait', () => {
  const acquiring = async (first: object, tier: string | undefined, more: object = {}) => {
    const service = await serviceOf(first, memoryStore())
    const acquire = () =>
      service.limiter.acquire({ ip: '192.0.2.1' }, { maxWait: '12h', ...more, ...(tier && { tier }) })
    await acquire()
    const waiting = acquire()
    let result: unknown = 'waits'
    waiting.then(
      ({ allowed }) => {
        result = allowed
      },
      (error) => {
        result = error.message
      },
    )
    await sleep(20)
    const after = async (next: object) => {
      await service.change(next)
      await sleep(20)
      return result
    }
    return after
  }

  test('keep their limits where their policy is gone, and follow it when it is back', async () => {
    const after = await acquiring({ api: policy(1), other: policy(5) }, 'api')
    expect(await after({ other: policy(5) })).toBe('waits')
    expect(await after({ api: policy(2), other: policy(5) })).toBe(true)
  })

  test('keep the policy that was the only one', async () => {
    const after = await acquiring({ api: policy(1) }, undefined)
    expect(await after({ api: policy(1), other: policy(5) })).toBe('waits')
    expect(await after({ other: policy(5) })).toBe('waits')
    expect(await after({ other: policy(5), api: policy(2) })).toBe(true)
  })

  test('keep their limits where their policy counts other units', async () => {
    const after = await acquiring({ api: policy(1) }, 'api')
    expect(await after({ api: policy(1, { limits: [hour(1, { unit: 'tokens' })], cost: { tokens: 1 } }) })).toBe(
      'waits',
    )
    expect(await after({ api: policy(2) })).toBe(true)
  })

  test('keep their limits where their policy counts other keys', async () => {
    const after = await acquiring({ api: policy(1) }, 'api')
    expect(await after({ api: policy(1, { key: 'everyone' }) })).toBe('waits')
    expect(await after({ api: policy(2) })).toBe(true)
  })
})
