import { memoryStore } from '@sluice/core'
import { OFFENDERS } from '@sluice/core/store'
import { expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { zipf } from '../../support/zipf.js'

const DAY_MS = 86_400_000
/** In `npm run deep`, two million refusals of a million identities. */
const IDENTITIES = byEffort({ quick: 30_000, usual: 50_000, full: 1_000_000 })
const DRAWS = byEffort({ quick: 60_000, usual: 200_000, full: 2_000_000 })

test('among very many identities, those above 0.1 % of refusals are listed, with counts within the error bound', async () => {
  let now = 20_000 * DAY_MS
  const store = memoryStore({ clock: () => now, offenders: true })
  let drawn = 0
  let handedOn = Promise.resolve({ refusals: 0 })
  const { counts, refusals } = zipf({ identities: IDENTITIES, draws: DRAWS, seed: 11 }, (identity) => {
    store[OFFENDERS].note?.('api', [identity])
    if (++drawn % (DRAWS / 100) !== 0) return
    // Over more than half an hour, in which sketches begin afresh.
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
  for (const [identity, reported] of listed) {
    const count = counts.get(identity) as number
    expect(reported).toBeLessThanOrEqual(count)
    expect(reported).toBeGreaterThanOrEqual(count - report.error)
  }
  await store.close()
})
