import fc from 'fast-check'
import { expect, test } from 'vitest'
import { IdentityHashes } from '../../packages/policies/src/sources/postgres/identity-hashes.js'

test('IdentityHashes contains the same as a set, whatever is added and removed', () => {
  // Few different halves, so that most occur repeatedly, at the edges of buckets and of their numbers.
  const half = fc.constantFrom(0, 1, 0xfffff, 0x100000, 0x100001, 0x7fffffff, 0x80000000, 0xffffffff)
  const step = fc.record({ isAdded: fc.boolean(), high: half, low: half })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const hashes = new IdentityHashes()
      const expected = new Set<string>()
      for (const { isAdded, high, low } of steps) {
        if (isAdded) hashes.add(high, low)
        else hashes.delete(high, low)
        if (isAdded) expected.add(`${high}/${low}`)
        else expected.delete(`${high}/${low}`)
        expect(hashes.has(high, low)).toBe(isAdded)
      }
      expect(hashes.size).toBe(expected.size)
      for (const { high, low } of steps) expect(hashes.has(high, low)).toBe(expected.has(`${high}/${low}`))
      hashes.clear()
      expect(hashes.size).toBe(0)
      for (const { high, low } of steps) expect(hashes.has(high, low)).toBe(false)
    }),
  )
})

test('IdentityHashes finds each of 200,000 hashes, and no others', () => {
  const hashes = new IdentityHashes()
  // From a sequence that repeats after 2^32 steps.
  const halves = (i: number) => [Math.imul(i, 0x9e3779b1) >>> 0, Math.imul(i, 0x85ebca6b) >>> 0] as const
  for (let i = 0; i < 200_000; i++) hashes.add(...halves(i))
  expect(hashes.size).toBe(200_000)
  for (let i = 0; i < 200_000; i++) if (!hashes.has(...halves(i))) throw new Error(`${i} is missing`)
  for (let i = 200_000; i < 400_000; i++) if (hashes.has(...halves(i))) throw new Error(`${i} is there`)
  for (let i = 0; i < 200_000; i += 2) hashes.delete(...halves(i))
  expect(hashes.size).toBe(100_000)
  for (let i = 0; i < 200_000; i++) if (hashes.has(...halves(i)) !== (i % 2 === 1)) throw new Error(`${i}`)
})
