import { createLimiter, memoryStore } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { HitLedger } from '../../packages/bridges/src/hit-ledger.js'

/** A ledger, and the hits that it notes, by a clock. */
function make(max: number, limit = 5) {
  let now = 0
  const limiter = createLimiter({ store: memoryStore({ clock: () => now }), limit, window: 1000, name: 'ledger' })
  const ledger = new HitLedger(max, () => now)
  return {
    ledger,
    pass: (ms: number) => (now += ms),
    used: async (key: string) => limit - (await limiter.peek(key)).remaining,
    async hit(key: string, cost = 1, windowMs = 1000) {
      const verdict = await limiter.consume(key, { cost })
      ledger.note(key, { allowed: verdict.allowed, used: 0, waitMs: 0, verdict }, windowMs)
      return verdict.allowed
    },
  }
}

describe('hits that are taken back', () => {
  test('a refused hit is taken back before an admitted one, which is then the oldest', async () => {
    const { ledger, hit, pass, used } = make(100, 2)
    await hit('ann')
    pass(500)
    await hit('ann')
    expect(await hit('ann')).toBe(false)
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(2)
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(1)
    // The later one is left.
    pass(600)
    expect(await used('ann')).toBe(1)
  })

  test('nothing is taken back of a key without hits, or beyond them', async () => {
    const { ledger, hit, used } = make(100)
    await ledger.cancel('ann')
    await hit('ann')
    await ledger.cancel('ann')
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(0)
  })

  test('after a reset, hits from before it are taken back without effect on later ones', async () => {
    const { ledger, hit, used } = make(100)
    await hit('ann')
    ledger.forget('ann')
    await hit('ann')
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(2)
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(1)
  })

  test('after a reset, hits beyond the bound are taken back without effect on later ones', async () => {
    const { ledger, hit, used } = make(2)
    await hit('ann')
    await hit('ann')
    ledger.forget('ann')
    await hit('ann')
    await ledger.cancel('ann')
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(3)
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(2)
  })

  test('an expired hit is passed over for the oldest that still counts', async () => {
    const { ledger, hit, pass, used } = make(100)
    await hit('ann')
    pass(600)
    await hit('ann')
    pass(500)
    await ledger.cancel('ann')
    expect(await used('ann')).toBe(0)
  })

  test('hits are held for a window, and up to a bound', async () => {
    const { ledger, hit, pass } = make(4)
    for (const key of ['a', 'b', 'c', 'd']) await hit(key)
    expect(ledger.size).toBe(4)
    pass(1000)
    await hit('e')
    expect(ledger.size).toBe(2)
  })

  test('a key whose earlier hits had no room is not refunded until those have expired', async () => {
    const { ledger, hit, pass, used } = make(2)
    await hit('ann')
    pass(900)
    await hit('bob')
    pass(100)
    await hit('bob')
    await ledger.cancel('bob')
    expect(await used('bob')).toBe(2)
    pass(900)
    await ledger.cancel('bob')
    expect(await used('bob')).toBe(0)
  })

  test('a hit of several units is refunded in part, once', async () => {
    const { ledger, hit, used } = make(100)
    await hit('ann', 3)
    await ledger.refund('ann', 2)
    expect(await used('ann')).toBe(1)
    await ledger.refund('ann', 2)
    expect(await used('ann')).toBe(1)
  })

  test('a key with a long window does not keep the room of those whose window has passed', async () => {
    const { ledger, hit, pass, used } = make(10)
    await hit('slow', 1, 86_400_000)
    for (let i = 0; i < 10; i++) await hit(`key-${i}`)
    pass(1000)
    await hit('ann', 3)
    await ledger.refund('ann', 3)
    expect(await used('ann')).toBe(0)
  })

  test('of keys with windows of any length none is held for much longer than its own', async () => {
    const { ledger, hit, pass } = make(1000)
    const windows = [1, 3, 70, 1000, 60_000, 1000, 3, 86_400_000, 70, 1]
    for (const [i, windowMs] of windows.entries()) {
      await hit(`key-${i % 4}`, 1, windowMs)
      pass(1)
    }
    pass(2 * 86_400_000)
    await hit('last')
    expect(ledger.size).toBe(2)
  })
})
