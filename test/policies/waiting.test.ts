import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'

interface Client {
  readonly user: string
}

const hour = (limit: number) => ({ limit, window: '1h' })
const api = (limit: object, more: object = {}) => ({
  policies: { api: { key: 'user', limits: [limit], respond: { queue: { maxWait: '12h' } }, ...more } },
})

/** A document that a test changes, and requests that wait for its limits. */
async function serviceOf(first: object) {
  const { guard, limiter, change } = await changingPolicies(first, {
    policies: { keys: { user: (request: Client) => request.user }, costs: { tokens: () => 1 } },
  })
  const done: string[] = []
  return {
    limiter,
    done,
    async request(name: string, path = '/') {
      const { proceed } = await guard(contextOf({ request: { user: 'ann' }, ip: '192.0.2.1', path } as never) as never)
      done.push(name)
      return proceed
    },
    /** Starts requests, and waits until they wait. */
    async queued(names: readonly string[]) {
      const all = names.map((name) => this.request(name))
      await sleep(20)
      return all
    },
    async change(next: object) {
      await change(next)
      // The next requests come in a later turn of the event loop.
      await setImmediate()
    },
  }
}

describe('requests that wait when a document changes', () => {
  test.each(['slidingLog', 'fixedWindow', 'gcra', 'tokenBucket'])(
    'are admitted at once by a higher limit of %s',
    async (algorithm) => {
      const service = await serviceOf(api({ algorithm, ...hour(1) }))
      expect(await service.request('first')).toBe(true)
      const waiting = await service.queued(['a', 'b', 'c'])
      await service.change(api({ algorithm, ...hour(100) }))
      expect(await Promise.all(waiting)).toEqual([true, true, true])
      expect(service.done).toEqual(['first', 'a', 'b', 'c'])
    },
  )

  test('are refused by a limit of 0', async () => {
    const service = await serviceOf(api(hour(1)))
    expect(await service.request('first')).toBe(true)
    const waiting = await service.queued(['a', 'b'])
    await service.change(api(hour(0)))
    expect(await Promise.all(waiting)).toEqual([false, false])
  })

  test('stay before those that come later, also where the change begins a new count', async () => {
    const service = await serviceOf({ carry: 'reset', ...api(hour(1)) })
    expect(await service.request('first')).toBe(true)
    const waiting = await service.queued(['a', 'b'])
    await service.change({ carry: 'reset', ...api(hour(2)) })
    const [last] = await service.queued(['last'])
    expect(await Promise.all(waiting)).toEqual([true, true])
    expect(service.done).toEqual(['first', 'a', 'b'])
    await service.change({ carry: 'reset', ...api(hour(3)) })
    expect(await last).toBe(true)
  })

  test('follow their policy where others apply beside it', async () => {
    const service = await serviceOf(api(hour(1)))
    expect(await service.request('first')).toBe(true)
    const waiting = await service.queued(['a', 'b', 'c'])
    const { policies } = api(hour(100))
    const respond = { queue: { maxWait: '12h' } }
    await service.change({ policies: { ...policies, all: { key: 'everyone', limits: [hour(2)], respond } } })
    expect(await Promise.all(waiting.slice(0, 2))).toEqual([true, true])
    expect(service.done).toEqual(['first', 'a', 'b'])
    await service.change({ policies })
    expect(await waiting[2]).toBe(true)
  })

  test('have the override of their client that begins', async () => {
    const service = await serviceOf(api(hour(1)))
    expect(await service.request('first')).toBe(true)
    const waiting = await service.queued(['a', 'b'])
    await service.change({
      ...api(hour(1)),
      overrides: [{ policy: 'api', key: { user: 'ann' }, limits: [{ limit: 3 }] }],
    })
    expect(await Promise.all(waiting)).toEqual([true, true])
  })

  test('have the costs of the new document', async () => {
    const tokens = (limit: number, cost: unknown) => api({ ...hour(limit), unit: 'tokens' }, { cost: { tokens: cost } })
    const service = await serviceOf(tokens(2, 2))
    expect(await service.request('first')).toBe(true)
    const waiting = await service.queued(['a', 'b'])
    await service.change(tokens(4, 'tokens'))
    expect(await Promise.all(waiting)).toEqual([true, true])
  })

  test('keep their limits where the new document has none for them', async () => {
    const service = await serviceOf(api(hour(1)))
    expect(await service.request('first')).toBe(true)
    const [waiting] = await service.queued(['a'])
    await service.change({ policies: {} })
    await service.change(api(hour(2)))
    expect(await waiting).toBe(true)
  })

  test('are admitted when their client is reset by hand', async () => {
    const service = await serviceOf(api(hour(1)))
    expect(await service.request('first')).toBe(true)
    const [waiting] = await service.queued(['a'])
    await service.limiter.reset({ user: 'ann' })
    expect(await waiting).toBe(true)
  })
})

describe('calls of acquire that wait when a document changes', () => {
  test.each([
    ['permits', { algorithm: 'concurrency', ttl: '1h' }],
    ['a window', { window: '1h' }],
  ])('are admitted by a higher limit of %s', async (_, limit) => {
    const service = await serviceOf(api({ ...limit, limit: 1 }))
    const acquire = () => service.limiter.acquire({ user: 'ann' }, { maxWait: '12h' })
    await acquire()
    const waiting = [acquire(), acquire()]
    await sleep(20)
    await service.change(api({ ...limit, limit: 3 }))
    expect((await Promise.all(waiting)).map(({ allowed }) => allowed)).toEqual([true, true])
  })

  test('name their policy by tier, where there are several', async () => {
    const two = (limit: number) => ({
      policies: { ...api(hour(limit)).policies, other: { key: 'user', limits: [hour(1)] } },
    })
    const service = await serviceOf(two(1))
    const acquire = () => service.limiter.acquire({ user: 'ann' }, { tier: 'api', maxWait: '12h' })
    await acquire()
    const waiting = acquire()
    await sleep(20)
    await service.change(two(2))
    expect(await waiting).toMatchObject({ allowed: true, remaining: 0 })
  })
})
