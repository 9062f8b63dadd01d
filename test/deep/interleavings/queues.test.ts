// Runs alone: it takes over the timers of its process.
import { gcra, slidingLog } from '@sluice/core'
import { afterEach, beforeEach, describe, test, vi } from 'vitest'
import { explore } from './support/explore.js'
import { type WaitersOptions, WaitersWorld } from './support/waiters-world.js'

// The explorer itself uses setImmediate.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const exploreWaiters = (options: WaitersOptions, moreThan: number) =>
  explore(() => WaitersWorld.make(options), moreThan)

const limits = { slidingLog: slidingLog({ limit: 1, window: 300 }), gcra: gcra({ limit: 1, window: 300 }) }

describe.each(Object.entries(limits))('waiters for a %s', (_, limit) => {
  test('waiters are admitted by refunded units, however late the store replies', async () => {
    await exploreWaiters({ limit, taken: 1, waiters: [{}, {}] }, 2000)
  })

  test('a waiter that leaves at any moment is charged nothing', async () => {
    await exploreWaiters({ limit, taken: 0, waiters: [{}, { leaves: true }] }, 80)
  })

  test('a waiter waits for at most its maxWait', async () => {
    await exploreWaiters({ limit, taken: 1, waiters: [{ maxWait: 350 }, { maxWait: 400 }] }, 2000)
  })
})

describe('waiters', () => {
  test('a waiter may leave during a refund', async () => {
    await exploreWaiters({ limit: limits.gcra, taken: 1, waiters: [{ leaves: true }] }, 50)
  })

  test('waiters are served although time passes during calls to the store', async () => {
    const waiters = [{ leaves: true }, { maxWait: 400 }]
    await exploreWaiters({ limit: limits.gcra, taken: 0, waiters, slow: 1 }, 100)
  })

  test('waiters continue when the store fails one of them', async () => {
    await exploreWaiters(
      {
        limit: limits.gcra,
        taken: 0,
        waiters: [{ leaves: true }, {}],
        faults: 1,
      },
      1000,
    )
  })
})
