import { expect, test } from 'vitest'
import { tagOf } from '../../../packages/core/src/redis/scripts/slot-tags.js'
import { SLOTS, slotOf } from '../../support/slots.js'

test('every slot has a hash tag of its own', () => {
  const tags = new Set<string>()
  for (let slot = 0; slot < SLOTS; slot++) {
    const tag = tagOf(slot)
    if (slotOf(`sluice:v1:{${tag}}:jobs:charge:x`) !== slot) expect.fail(`${tag} is not in slot ${slot}`)
    tags.add(tag)
  }
  expect(tags.size).toBe(SLOTS)
})
