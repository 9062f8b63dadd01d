import { memoryStore, redisStore, type Store } from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()
const stores: Record<string, () => Store> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(client, { timeout: 5000 }),
}
afterEach(() => client.flushall())

/** Limits of as many windows. */
const limits = (count: number, limit: number) =>
  Array.from({ length: count }, (_, i) => ({ algorithm: 'fixedWindow', limit, window: `${i + 1}h` }))

describe.each(Object.keys(stores))('in %s', (kind) => {
  test('a request is charged by policies of more than 32 limits, all or none', async () => {
    const store = (stores[kind] as () => Store)()
    const policies = { a: { limits: limits(20, 9) }, b: { limits: limits(20, 9) }, c: { limits: limits(32, 2) } }
    const { loaded, guard, limiter } = await changingPolicies({ policies }, { store })
    const request = async () => (await guard(contextOf({ ip: '192.0.2.1' }))).proceed
    const used = () =>
      Promise.all(
        ['a', 'b', 'c'].map(async (tier) => {
          const { limits } = await limiter.peek({ ip: '192.0.2.1' }, { tier })
          return [...new Set(limits.map(({ limit, remaining }) => limit - remaining))]
        }),
      )
    expect([await request(), await request()]).toEqual([true, true])
    expect(await used()).toEqual([[2], [2], [2]])
    // The last policy refuses, and the others get their charges back.
    expect(await request()).toBe(false)
    expect(await used()).toEqual([[2], [2], [2]])
    await loaded.close()
  })
})
