import { memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { zipf } from '../../support/zipf.js'

const DAY_MS = 86_400_000

test('of a million identities, those above 0.1 % of refusals are listed, and no count is beyond the bound', async () => {
  let now = 20_000 * DAY_MS
  const store = memoryStore({ clock: () => now, offenders: true })
  let drawn = 0
  let handedOn = Promise.resolve({ refusals: 0 })
  const { counts, refusals } = zipf({ identities: 1_000_000, draws: 2_000_000, seed: 11 }, (identity) => {
    store.noteRefusal?.('api', [identity])
    if (++drawn % 20_000 !== 0) return
    // Over a good part of an hour, in which sketches are begun anew.
    now += 20_000
    handedOn = store.offenders({ policy: 'api' })
  })
  await handedOn
  const report = await store.offenders({ policy: 'api', top: 1000, in: '1d' })
  expect(report.refusals).toBe(refusals)
  expect(report.error).toBeGreaterThan(0)
  expect(report.error).toBeLessThan(refusals / 1000)
  const listed = new Map(report.offenders.map(({ kind, value, refusals }) => [`${kind}=${value}`, refusals]))
  for (const [identity, count] of counts) {
    if (count > refusals / 1000) expect(listed.get(identity), identity).toBeGreaterThan(0)
  }
  for (const [identity, told] of listed) {
    const count = counts.get(identity) as number
    expect(told).toBeLessThanOrEqual(count)
    expect(told).toBeGreaterThanOrEqual(count - report.error)
  }
  await store.close()
}, 60_000)
