// The contract of stores on the memory store, and the other helpers of tests.
import assert from 'node:assert/strict'
import { createLimiter, memoryStore } from '@sluice/core'
import { failingStore, resetAll, storeContract, testClock } from '@sluice/testing'
import { main } from './support.mjs'

/** @type {{ name: string, body: () => Promise<void> }[]} */
const tests = []
storeContract({
  name: 'memory',
  make: (clock) => memoryStore({ clock }),
  describe: (_name, body) => body(),
  test: (name, body) => tests.push({ name, body }),
})

main(async () => {
  assert(tests.length > 50)
  for (const { body } of tests) await body()

  const clock = testClock()
  const store = memoryStore({ clock })
  const limiter = createLimiter({ store, limit: 1, window: '1m' })
  await limiter.consume('ann')
  clock.advance('1m')
  assert.equal((await limiter.consume('ann')).allowed, true)
  await resetAll(store)
  assert.equal((await limiter.consume('ann')).allowed, true)
  const failing = failingStore()
  failing.fail()
  assert.equal((await createLimiter({ store: failing, limit: 1, window: '1m' }).consume('ann')).kind, 'unavailable')
})
