import { createLimiter, fixedWindow, type Limiter, memoryStore, type Store, type Verdict } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { distantStore } from '../../support/outages.js'

// No time passes for waiting requests but where a test advances it.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const now = () => 1_000_000_000
const STORES: Record<string, () => Store> = {
  'a memory store': () => memoryStore({ clock: now }),
  'a distant store': () => distantStore(now),
}
const cost = (tokens: number) => ({ cost: { tokens } })

interface Charged {
  readonly verdict: Verdict
  readonly key: string
}
/** The ways in which a limiter makes room for 60 of 100 tokens that are charged. */
const WAYS: Record<string, (limiter: Limiter, charged: Charged) => Promise<unknown>> = {
  'settles the verdict': (_, { verdict }) => verdict.settle({ tokens: 40 }),
  'settles by id': (limiter, { verdict }) => limiter.settle(verdict.id as string, { tokens: 40 }),
  'refunds the verdict': (limiter, { verdict, key }) => limiter.refund(key, verdict),
  'refunds by id': (limiter, { verdict }) => limiter.refund(verdict.id as string),
  'ends a meter': (_, { verdict }) => verdict.meter('tokens').end(),
  'resets the key': (limiter, { key }) => limiter.reset(key),
}
const cases = Object.keys(STORES).flatMap((store) => Object.keys(WAYS).map((way) => [store, way] as const))

function limitersOn(store: Store, count: number): Limiter[] {
  const limits = [fixedWindow({ unit: 'tokens', limit: 100, window: '1h' })]
  return Array.from({ length: count }, () => createLimiter({ name: 'chat', store, limits, charges: { keep: '1h' } }))
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

describe('a request that waits by one limiter', () => {
  test.each(cases)('on %s is admitted at once when another limiter of the policy %s', async (makeStore, way) => {
    const store = STORES[makeStore]?.() as Store
    const [one, other] = limitersOn(store, 2) as [Limiter, Limiter]
    const verdict = await other.consume('k', cost(100))
    const admitted: string[] = []
    void one.acquire('k', cost(60)).then(() => admitted.push('k'))
    void one.acquire('another', cost(60)).then(() => admitted.push('another'))
    await pass(0)
    expect(admitted).toEqual(['another'])
    await WAYS[way]?.(other, { verdict, key: 'k' })
    await pass(0)
    expect(admitted).toEqual(['another', 'k'])
  })

  test('takes its turn among those of all limiters of the policy', async () => {
    const limiters = limitersOn(memoryStore({ clock: now }), 3)
    const [first] = limiters as [Limiter]
    const verdict = await first.consume('k', cost(100))
    const served: number[] = []
    for (let n = 0; n < 6; n++) {
      void limiters[n % 3]?.acquire('k', cost(20)).then(() => served.push(n))
      await pass(1)
    }
    await first.settle(verdict, { tokens: 60 })
    await pass(0)
    expect(served).toEqual([0, 1])
    await first.reset('k')
    await pass(0)
    expect(served).toEqual([0, 1, 2, 3, 4, 5])
  })

  test('on a store that other processes share looks once a second for a key, whoever waits', async () => {
    const store = distantStore(now)
    const limiters = limitersOn(store, 2)
    const decide = vi.spyOn(store, 'decide')
    await limiters[0]?.consume('k', cost(100))
    const admitted: Verdict[] = []
    for (let n = 0; n < 20; n++) void limiters[n % 2]?.acquire('k', cost(5)).then((verdict) => admitted.push(verdict))
    await pass(100)
    decide.mockClear()
    await pass(60_000)
    expect(decide).toHaveBeenCalledTimes(60)
    // Another process makes room, which no limiter of this one sees.
    const { plan, identities } = decide.mock.calls[0]?.[0] ?? {}
    await store.reset(plan as never, identities as never)
    await pass(1000)
    expect(admitted).toHaveLength(20)
  })

  test('on a memory store sleeps until time makes room', async () => {
    const store = memoryStore({ clock: now })
    const [limiter] = limitersOn(store, 1) as [Limiter]
    await limiter.consume('k', cost(100))
    const decide = vi.spyOn(store, 'decide')
    const waiting = limiter.acquire('k', cost(5))
    await pass(0)
    decide.mockClear()
    await pass(700_000)
    expect(decide).not.toHaveBeenCalled()
    await limiter.reset('k')
    expect((await waiting).allowed).toBe(true)
  })
})
