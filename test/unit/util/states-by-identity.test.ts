import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StatesByIdentity } from '../../../packages/core/src/util/states-by-identity.js'

const KEPT = 5
const PLACES = [
  { policy: 'api', cellId: 'a' },
  { policy: 'api', cellId: 'b' },
  { policy: 'login', cellId: 'a' },
]
const nameOf = ({ policy, cellId }: (typeof PLACES)[number], identity: string) => `${policy}\n${cellId}\n${identity}`

type State = { policy: string; cellId: string; units: number }

const step = fc.record({
  what: fc.constantFrom('set', 'set', 'set', 'set', 'use', 'use', 'find', 'delete', 'deleteAll'),
  identity: fc.integer({ min: 0, max: 14 }).map((n) => `user=u${n}`),
  place: fc.constantFrom(...PLACES),
})

test('the states of the identities that were used last are found, and no more than twice as many are known', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const states = new StatesByIdentity<State>(KEPT)
      const model = new Map<string, State>()
      /** The identities that were used last, which are certainly known. */
      let recent: string[] = []
      const use = (identity: string) => {
        recent = [...recent.filter((other) => other !== identity), identity].slice(-KEPT)
      }
      const isKnown = (identity: string) => PLACES.some(({ policy, cellId }) => states.find(policy, cellId, identity))
      for (const [units, { what, identity, place }] of steps.entries()) {
        const { policy, cellId } = place
        const name = nameOf(place, identity)
        const isCertain = recent.includes(identity)
        if (!isCertain) {
          for (const each of PLACES) {
            if (!states.find(each.policy, each.cellId, identity)) model.delete(nameOf(each, identity))
          }
        }
        const expected = model.get(name)
        switch (what) {
          case 'set':
            states.set(identity, { ...place, units })
            model.set(name, { ...place, units })
            use(identity)
            break
          case 'use': {
            const found = states.use(policy, cellId, identity)
            if (isCertain || found) expect(found).toEqual(expected)
            if (isKnown(identity)) use(identity)
            break
          }
          case 'find': {
            const found = states.find(policy, cellId, identity)
            if (isCertain || found) expect(found).toEqual(expected)
            break
          }
          case 'delete':
            states.delete(policy, cellId, identity)
            model.delete(name)
            break
          case 'deleteAll':
            states.deleteAll(identity)
            for (const each of PLACES) model.delete(nameOf(each, identity))
        }
        if (what.startsWith('delete')) expect(states.find(policy, cellId, identity)).toBeUndefined()
      }
      const known = Array.from({ length: 15 }, (_, n) => `user=u${n}`).filter(isKnown)
      expect(known.length).toBeLessThanOrEqual(2 * KEPT)
      expect(states.isEmpty).toBe(known.length === 0)
    }),
  )
})
