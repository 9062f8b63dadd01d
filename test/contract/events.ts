import { createLimiter, events, gcra, type ManagedStore, type SluiceEvents, slidingLog } from '@sluice/core'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'

/** Events of limiters and stores. */
export function eventsContract(under: StoreUnderTest): void {
  describe(`events on ${under.name}`, () => {
    const clock = new Clock()
    let store: ManagedStore
    beforeAll(async () => {
      store = await under.make(clock.read, { denyCache: false })
    })
    const stops: (() => void)[] = []
    afterEach(() => {
      for (const stop of stops.splice(0)) stop()
    })

    /** Records the events of one policy among all events of the process. */
    function record<Name extends keyof SluiceEvents>(name: Name, policy: string): SluiceEvents[Name][] {
      const seen: SluiceEvents[Name][] = []
      const listener = (event: SluiceEvents[Name]) => {
        if ((event as { policy?: string }).policy === policy) seen.push(event)
      }
      stops.push(events.on(name, listener))
      return seen
    }

    test('each decision emits one event with its outcome, the refusing limit and its source', async () => {
      const name = freshKey()
      const limits = [gcra({ name: 'burst', limit: 2, window: '1s' }), gcra({ name: 'day', limit: 100, window: '1d' })]
      const limiter = createLimiter({ name, store, limits })
      const [own, all, refused] = [[] as unknown[], record('decision', name), record('refused', name)]
      stops.push(limiter.on('decision', ({ verdict: _, durationMs, ...event }) => own.push(event)))
      await limiter.peek('ann')
      const first = await limiter.consume('ann')
      await limiter.consume('ann', { cost: 101 })
      await limiter.consume('ann')
      const last = await limiter.consume('ann')
      const common = { policy: name, source: 'store', reported: false }
      expect(own).toEqual([
        { ...common, allowed: true, outcome: 'admitted', limit: undefined, used: 0.5 },
        { ...common, allowed: false, outcome: 'impossible', limit: 'burst', used: 0.5 },
        { ...common, allowed: true, outcome: 'admitted', limit: undefined, used: 1 },
        { ...common, allowed: false, outcome: 'limited', limit: 'burst', used: 1 },
      ])
      expect(all.map(({ verdict }) => verdict)).toEqual([first, refused[0]?.verdict, all[2]?.verdict, last])
      expect(refused.map(({ outcome }) => outcome)).toEqual(['impossible', 'limited'])
      expect(all.every(({ durationMs }) => durationMs > 0 && durationMs < 600_000)).toBe(true)
    })

    test('a listener that is removed receives no further events, even when it is removed during one', async () => {
      const limiter = createLimiter({ name: freshKey(), store, limit: 10, window: '1m' })
      const seen: string[] = []
      const stopThird = () => stops[2]?.()
      const first = () => {
        seen.push('first')
        stopThird()
      }
      stops.push(limiter.on('decision', first))
      stops.push(limiter.on('decision', () => void seen.push('second')))
      stops.push(limiter.on('decision', () => void seen.push('third')))
      await limiter.consume('ann')
      // A listener that is added during an event receives the next one.
      stops.push(limiter.on('decision', () => stops.push(limiter.on('decision', () => void seen.push('late')))))
      await limiter.consume('ann')
      expect(seen).toEqual(['first', 'second', 'first', 'second'])
      stops[1]?.()
      stops[1]?.()
      await limiter.consume('ann')
      expect(seen.slice(4)).toEqual(['first', 'late'])
    })

    test('near-limit is emitted once, by the decision that crosses the fraction', async () => {
      const limiter = createLimiter({ name: freshKey(), store, limits: [slidingLog({ limit: 10, window: '1m' })] })
      const crossed: [number, number][] = []
      for (const at of [0.2, 0.8, 1]) {
        stops.push(limiter.on('near-limit', ({ at, used }) => void crossed.push([at, used]), { at }))
      }
      for (let n = 0; n < 12; n++) await limiter.consume('ann')
      await limiter.consume('bob', { cost: 9 })
      expect(crossed).toEqual([
        [0.2, 0.2],
        [0.8, 0.8],
        [1, 1],
        [0.2, 0.9],
        [0.8, 0.9],
      ])
    })

    test('each strike that counts emits an event, and each ban emits one, by refusals or by hand', async () => {
      const name = freshKey()
      const limiter = createLimiter({
        name,
        store,
        limit: 1,
        window: '1h',
        ban: { by: 'key', after: 3, within: '1h', for: ['10m'] },
      })
      const [strikes, bans] = [record('strike', name), record('ban', name)]
      for (let n = 0; n < 6; n++) await limiter.consume('ann')
      const ann = { kind: 'key', value: 'ann' }
      const strike = { policy: name, identity: ann, weight: 1, reason: '', isLocal: false }
      expect(strikes).toEqual([strike, strike, strike])
      expect(bans).toEqual([
        { policy: name, identity: ann, rung: 1, strikes: 3, forMs: 600_000, reason: '', isLocal: false },
      ])
      const bob = { kind: 'key', value: 'bob' }
      await limiter.strike('bob', { reason: 'probe' })
      await limiter.strike('bob', { weight: 2, reason: 'again' })
      await limiter.strike('bob')
      expect(strikes.slice(3).map(({ identity, weight, reason }) => [identity, weight, reason])).toEqual([
        [bob, 1, 'probe'],
        [bob, 2, 'again'],
      ])
      expect(bans.slice(1)).toMatchObject([{ identity: bob, rung: 1, strikes: 3, reason: 'again' }])
    })

    test('blocks by hand and their ends emit events on the limiter or store that made them', async () => {
      const name = freshKey()
      const limiter = createLimiter({ name, store, limit: 1, window: '1h' })
      const received: unknown[] = []
      const blocks = [record('block', name), record('unblock', name)]
      stops.push(limiter.on('block', (event) => received.push(['limiter', event])))
      const stop = store.on?.('block', (event) => received.push(['store', event]))
      if (stop) stops.push(stop)
      await limiter.block('ann', { for: '1h', reason: 'spam' })
      await limiter.unblock('ann')
      await store.blocks?.add({ user: 'eve' }, { for: Number.POSITIVE_INFINITY, policy: name })
      await store.blocks?.remove({ user: 'eve' }, { policy: name })
      const ofAnn = { policy: name, identity: { kind: 'key', value: 'ann' }, forMs: 3_600_000, reason: 'spam' }
      const eve = { kind: 'user', value: 'eve' }
      const ofEve = { policy: name, identity: eve, forMs: Number.POSITIVE_INFINITY, reason: '' }
      expect(received).toEqual([
        ['limiter', ofAnn],
        ['store', ofEve],
      ])
      expect(blocks[0]).toEqual([ofAnn, ofEve])
      expect(blocks[1]).toEqual([
        { policy: name, identity: ofAnn.identity },
        { policy: name, identity: eve },
      ])
    })

    test('a store reports its health', async () => {
      const before = Date.now()
      const health = await store.health?.()
      expect(health).toMatchObject({ state: 'available', pending: 0, cause: undefined })
      expect(health?.since).toBeLessThanOrEqual(before)
      expect(health?.roundTripMs).toBeGreaterThanOrEqual(0)
    })
  })
}
