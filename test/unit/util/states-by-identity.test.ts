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
  what: fc.constantFrom('set', 'set', 'set', 'find', 'delete', 'deleteAll'),
  identity: fc.integer({ min: 0, max: 14 }).map((n) => `user=u${n}`),
  place: fc.constantFrom(...PLACES),
})

test('the states of the identities that were used last are found as they were set', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const states = new StatesByIdentity<State>(KEPT)
      const model = new Map<string, State>()
      /** The identities that were used last, which are certainly known. */
      let recent: string[] = []
      for (const [units, { what, identity, place }] of steps.entries()) {
        const { policy, cellId } = place
        const name = nameOf(place, identity)
        for (const each of PLACES) {
          const found = states.find(each.policy, each.cellId, identity)
          const expected = model.get(nameOf(each, identity))
          if (recent.includes(identity) || found) expect(found).toEqual(expected)
          if (!found) model.delete(nameOf(each, identity))
        }
        if (what === 'set') {
          states.set(identity, { ...place, units })
          model.set(name, { ...place, units })
        } else if (what === 'delete') {
          states.delete(policy, cellId, identity)
          model.delete(name)
        } else if (what === 'deleteAll') {
          states.deleteAll(identity)
          for (const each of PLACES) model.delete(nameOf(each, identity))
        }
        if (what.startsWith('delete')) expect(states.find(policy, cellId, identity)).toBeUndefined()
        const isKnown = PLACES.some((each) => model.has(nameOf(each, identity)))
        if (isKnown) recent = [...recent.filter((other) => other !== identity), identity].slice(-KEPT)
      }
    }),
  )
})

test('an identity is forgotten once twice as many others as are kept came after it', () => {
  const states = new StatesByIdentity<State>(KEPT)
  const identities = Array.from({ length: 100 }, (_, n) => `user=u${n}`)
  for (const identity of identities) states.set(identity, { policy: 'api', cellId: 'a', units: 1 })
  const found = identities.filter((identity) => states.find('api', 'a', identity))
  expect(found.length).toBeLessThanOrEqual(2 * KEPT)
  for (const identity of identities) states.delete('api', 'a', identity)
  expect(states.isEmpty).toBe(true)
})
