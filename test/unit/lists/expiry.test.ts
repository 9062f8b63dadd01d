import { expect, test } from 'vitest'
import { DataMatcher } from '../../../packages/core/src/features/lists/data-matcher.js'
import { ListBuilder } from '../../../packages/core/src/features/lists/list-data.js'
import { ipRange } from '../../../packages/core/src/util/ip-range.js'
import { byEffort } from '../../support/effort.js'
import { OracleRanges, randomAddress, randomRange, seeded } from './oracle-ranges.js'

interface Entry {
  readonly text: string
  readonly expiresAt?: number
  readonly reason?: string
}

function listOf(entries: readonly Entry[], now: () => number): DataMatcher {
  const builder = new ListBuilder()
  for (const { text, reason, expiresAt } of entries) {
    const details = { reason, expiresAt }
    const range = ipRange(text)
    if (range) builder.addRange(range, details)
    else builder.addText('user', text, details)
  }
  return new DataMatcher(builder.build(), now)
}

test('an entry matches until the ms at which it ends, then the next larger one does', () => {
  let now = 0
  const entries = [
    { text: '10.0.0.0/8', reason: 'net' },
    { text: '10.1.0.0/16', expiresAt: 2000, reason: 'part' },
    { text: '10.1.0.7', expiresAt: 1000, reason: 'one' },
    { text: '192.0.2.1', expiresAt: 1000 },
    { text: 'ann', expiresAt: 1000 },
  ]
  const list = listOf(entries, () => now)
  const seen = (value: string, kind = 'ip') => list.match({ kind, value })
  now = 999
  expect(seen('10.1.0.7')).toEqual({ reason: 'one', expiresAt: 1000, size: 1 })
  expect([seen('192.0.2.1')?.expiresAt, seen('ann', 'user')?.expiresAt]).toEqual([1000, 1000])
  now = 1000
  expect(seen('10.1.0.7')).toEqual({ reason: 'part', expiresAt: 2000, size: 65_536 })
  expect([seen('192.0.2.1'), seen('ann', 'user')]).toEqual([undefined, undefined])
  now = 2000
  expect(seen('10.1.0.7')).toEqual({ reason: 'net', expiresAt: undefined, size: 2 ** 24 })
  expect(seen('10.1.0.8')?.reason).toBe('net')
})

test('among equal entries the one that expires last counts', () => {
  const entries = [
    { text: '192.0.2.1', expiresAt: 1000 },
    { text: '192.0.2.1', expiresAt: 3000 },
    { text: '192.0.2.1', expiresAt: 2000 },
    { text: 'ann', expiresAt: 1000 },
    { text: 'ann' },
    { text: 'ann', expiresAt: 2000 },
  ]
  const list = listOf(entries, () => 2500)
  expect(list.match({ kind: 'ip', value: '192.0.2.1' })?.expiresAt).toBe(3000)
  expect(list.match({ kind: 'user', value: 'ann' })?.expiresAt).toBeUndefined()
})

test('at any time, a list with expiring entries matches the same as an oracle', () => {
  for (let seed = 1; seed <= byEffort({ quick: 8, usual: 30, full: 1000 }); seed++) {
    const random = seeded(seed)
    const entries = Array.from({ length: 1 + Math.floor(random() * 40) }, () => ({
      text: randomRange(random),
      expiresAt: random() < 0.4 ? Number.POSITIVE_INFINITY : Math.floor(random() * 10),
    }))
    const ranges = entries.map(({ text }) => text)
    let now = 0
    const list = listOf(entries, () => now)
    for (; now < 11; now++) {
      const oracle = new OracleRanges(entries.filter(({ expiresAt }) => expiresAt > now).map(({ text }) => text))
      for (let i = 0; i < 40; i++) {
        const address = randomAddress(random, ranges)
        const found = list.match({ kind: 'ip', value: address })
        expect(found && BigInt(found.size), `seed ${seed}, at ${now}: ${address}`).toEqual(oracle.smallest(address))
      }
    }
  }
})
