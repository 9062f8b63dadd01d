import { beforeEach, describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { type Distant, distantStore } from '../support/outages.js'

let store: Distant
beforeEach(() => {
  store = distantStore(() => 1_000_000_000)
})

/** A limit of an hour that a test changes, and requests of one client. */
async function serviceOf(algorithm: string, first: number, share = 1) {
  const document = (limit: number) => ({
    policies: { api: { key: 'everyone', limits: [{ algorithm, limit, window: '1h' }] } },
  })
  const { guard, change } = await changingPolicies(document(first), { store, guard: { unavailable: { share } } })
  return {
    change: (to: number) => change(document(to)),
    async admitted(times: number) {
      let admitted = 0
      for (let n = 0; n < times; n++) if ((await guard(contextOf() as never)).proceed) admitted++
      return admitted
    },
  }
}

// An outage that begins just before or after another document comes into force.
describe.each(['before', 'after'])(
  'in an outage that begins %s a change of a limit, used units still count',
  (when) => {
    describe.each(['slidingLog', 'fixedWindow', 'slidingWindow', 'gcra', 'tokenBucket'])('%s', (algorithm) => {
      test.each([
        [6, 10, 20, 1, 14],
        [6, 10, 5, 1, 0],
        [9, 10, 10, 1, 1],
        [16, 20, 40, 0.5, 12],
      ])('%d of %d units, with a limit of %d at a share of %d', async (used, from, to, share, left) => {
        const service = await serviceOf(algorithm, from, share)
        expect(await service.admitted(used)).toBe(used)
        if (when === 'before') store.isAway = true
        await service.change(to)
        store.isAway = true
        expect(await service.admitted(to)).toBe(left)
      })
    })
  },
)
