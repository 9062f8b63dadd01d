import { createLimiter, type ManagedStore, type OffendersQuery, type OffendersReport } from '@sluice/core'
import { OFFENDERS } from '@sluice/core/store'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { zipf } from '../support/zipf.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'

/** `store.offenders`: the identities that are refused most. */
export function offendersContract(under: StoreUnderTest): void {
  describe(`offenders on ${under.name}`, () => {
    const clock = new Clock()
    let store: ManagedStore
    beforeAll(async () => {
      store = await under.make(clock.read, { offenders: true })
    })
    afterAll(() => store.close())
    const offendersOf = (query: OffendersQuery) => store.offenders?.(query) as Promise<OffendersReport>

    test('offenders are sorted by refusals, by limits or blocks, without identities that were only admitted', async () => {
      const policy = freshKey()
      const limiter = createLimiter({ name: policy, store, limit: 1, window: '1m' })
      for (const [key, times] of Object.entries({ ann: 4, bob: 6, eve: 1 })) {
        for (let n = 0; n < times; n++) await limiter.consume(key)
      }
      await limiter.block('mallory', { for: '1m' })
      for (let n = 0; n < 2; n++) await limiter.consume('mallory')
      for (let n = 0; n < 9; n++) await limiter.peek('eve')
      const { offenders, refusals, error } = await offendersOf({ policy })
      expect(offenders).toEqual([
        { kind: 'key', value: 'bob', refusals: 5 },
        { kind: 'key', value: 'ann', refusals: 3 },
        { kind: 'key', value: 'mallory', refusals: 2 },
      ])
      expect({ refusals, error }).toEqual({ refusals: 10, error: 0 })
      expect((await offendersOf({ policy, top: 1 })).offenders.map(({ value }) => value)).toEqual(['bob'])
      expect((await offendersOf({ policy: freshKey() })).offenders).toEqual([])
    })

    test('refusals leave the report after 10 minutes, an hour or a day, and when their identity is forgotten', async () => {
      const policy = freshKey()
      const limiter = createLimiter({ name: policy, store, limit: 1, window: '1h' })
      const names = async (window: OffendersQuery['in']) =>
        (await offendersOf({ policy, ...(window && { in: window }) })).offenders.map(({ value }) => value)
      for (let n = 0; n < 3; n++) await limiter.consume('ann')
      for (let n = 0; n < 2; n++) await limiter.consume('bob')
      expect(await names('10m')).toEqual(['ann', 'bob'])
      clock.now += 12 * 60_000
      expect(await Promise.all([names('10m'), names('1h'), names('1d')])).toEqual([[], ['ann', 'bob'], ['ann', 'bob']])
      await store.forget?.({ key: 'bob' })
      expect(await Promise.all([names('1h'), names('1d')])).toEqual([['ann'], ['ann']])
      clock.now += 60 * 60_000
      expect(await Promise.all([names('1h'), names('1d')])).toEqual([[], ['ann']])
      clock.now += 28 * 3_600_000
      expect(await names('1d')).toEqual([])
    })

    test('among more identities than the report has room for, those above 0.1 % are listed, with counts within the error bound', async () => {
      const policy = freshKey()
      const { counts, refusals } = zipf({ identities: 30_000, draws: 60_000, seed: 7 }, (identity) =>
        store[OFFENDERS].note?.(policy, [identity]),
      )
      const report = await offendersOf({ policy, top: 1000, in: '1d' })
      expect(report.refusals).toBe(refusals)
      expect(report.error).toBeGreaterThan(0)
      expect(report.error).toBeLessThan(refusals / 1000)
      const listed = new Map(report.offenders.map(({ kind, value, refusals }) => [`${kind}=${value}`, refusals]))
      for (const [identity, count] of counts) {
        if (count > refusals / 1000) expect(listed.get(identity), identity).toBeGreaterThan(0)
      }
      for (const [identity, reported] of listed) {
        const count = counts.get(identity) as number
        expect(reported).toBeLessThanOrEqual(count)
        expect(reported).toBeGreaterThanOrEqual(count - report.error)
      }
    })

    test('offenders rejects an invalid query with an error that names the field', async () => {
      const given = offendersOf as (query: unknown) => Promise<unknown>
      await expect(given({})).rejects.toThrow('offenders: policy: expected')
      await expect(given({ policy: 'x', top: 1001 })).rejects.toThrow('offenders: top: expected at most 1000')
      await expect(given({ policy: 'x', in: '2h' })).rejects.toThrow('offenders: in: expected')
      const counting = (await under.make(clock.read)).offenders?.({ policy: 'x' })
      await expect(counting).rejects.toThrow('offenders: expected true')
    })
  })
}
