import { createLimiter, type ManagedStore, slidingLog, storeList, tokenBucket } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'

/** `store.forget`: erases everything stored about an identity, and nothing about others. */
export function forgettingContract(under: StoreUnderTest): void {
  describe(`forgetting on ${under.name}`, () => {
    const clock = new Clock()
    let store: ManagedStore
    beforeAll(async () => {
      store = await under.make(clock.read)
    })
    afterAll(() => store.close())
    const forget = async (identity: Record<string, string>) => store.forget?.(identity)

    test('forget erases the counts of an identity in every policy and algorithm, and no counts of others', async () => {
      const [ann, bob] = [freshKey(), `${freshKey()} with *[x]?`]
      const limiters = [
        createLimiter({ name: freshKey(), store, limit: 5, window: '1h' }),
        createLimiter({ name: freshKey(), store, limits: [tokenBucket({ limit: 5, window: '1h' })] }),
        createLimiter({ name: freshKey(), store, limits: [slidingLog({ limit: 5, window: '1h' })] }),
      ]
      for (const limiter of limiters) {
        for (const key of [ann, bob, `${ann}x`]) await limiter.consume(key, { cost: 5 })
        expect((await limiter.consume(ann)).allowed).toBe(false)
      }
      await forget({ key: ann })
      for (const limiter of limiters) {
        expect((await limiter.consume(ann)).remaining).toBe(4)
        expect((await limiter.peek(`${ann}x`)).remaining).toBe(0)
        expect((await limiter.peek(bob)).remaining).toBe(0)
      }
      await forget({ key: bob })
      for (const limiter of limiters) expect((await limiter.peek(bob)).remaining).toBe(5)
    })

    test('forget erases strikes, rungs, bans and blocks of an identity, also store-wide ones', async () => {
      const [name, key] = [freshKey(), freshKey()]
      const ban = { after: 2, within: '1h', for: ['1h', '1d'] } as const
      const limiter = createLimiter({ name, store, limit: 1, window: '1m', ban })
      const other = createLimiter({ name: freshKey(), store, limit: 1, window: '1m' })
      for (let n = 0; n < 3; n++) await limiter.consume(key)
      expect((await limiter.consume(key)).ban?.rung).toBe(1)
      await store.blocks?.add({ key }, { for: '1h' })
      await other.block('somebody', { for: '1h' })
      await forget({ key })
      expect((await limiter.consume(key)).allowed).toBe(true)
      expect((await other.consume(key)).allowed).toBe(true)
      expect((await limiter.consume(key)).reason).toBe('limited')
      expect(await store.blocks?.get({ key }, { policy: name })).toBeUndefined()
      expect(await store.blocks?.get({ key })).toBeUndefined()
      // Strikes and the rung begin again as for a new identity.
      expect((await limiter.consume(key)).ban?.rung).toBe(1)
      expect((await other.consume('somebody')).reason).toBe('blocked')
    })

    test('forget removes list entries for an address, and leaves entries for ranges that contain it', async () => {
      const [one, other] = [freshKey(), freshKey()]
      await store.list?.(one).add({ ip: '192.0.2.7' })
      await store.list?.(one).add({ ip: '192.0.2.0/24' })
      await store.list?.(other).add({ ip: '192.0.2.7' }, { reason: 'fraud' })
      await forget({ ip: '192.0.2.7' })
      expect((await store.list?.(one).list())?.entries.map(({ value }) => value)).toEqual(['192.0.2.0/24'])
      expect((await store.list?.(other).list())?.entries).toEqual([])
      const limiter = createLimiter({ name: freshKey(), store, limit: 1, window: '1m', deny: storeList(one) })
      expect((await limiter.consume('x')).allowed).toBe(true)
    })

    test('forget rejects an invalid identity with an error that names it', async () => {
      await expect(forget({})).rejects.toThrow('forget: expected an identity')
      await expect(forget({ ip: 'nobody' })).rejects.toThrow('forget: ip: expected')
    })
  })
}
