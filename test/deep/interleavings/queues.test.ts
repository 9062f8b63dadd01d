import { gcra, slidingLog } from '@sluice/core'
import { afterEach, beforeEach, describe, test, vi } from 'vitest'
import { explore } from './support/explore.js'
import { type WaitersOptions, WaitersWorld } from './support/waiters-world.js'

// The explorer itself waits for the ends of turns.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const exploreWaiters = (options: WaitersOptions, moreThan: number) =>
  explore(() => WaitersWorld.make(options), moreThan)

const limits = { slidingLog: slidingLog({ limit: 1, window: 300 }), gcra: gcra({ limit: 1, window: 300 }) }

describe.each(Object.entries(limits))('those who wait for a %s', (_, limit) => {
  test('get what is refunded, however late the store answers', async () => {
    await exploreWaiters({ limit, taken: 1, waiters: [{}, {}] }, 5000)
  })

  test('may leave at any moment, and take nothing along', async () => {
    await exploreWaiters({ limit, taken: 0, waiters: [{}, { leaves: true }] }, 100)
  })

  test('wait no longer than they would', async () => {
    await exploreWaiters({ limit, taken: 1, waiters: [{ maxWait: 350 }, { maxWait: 400 }] }, 2000)
  })
})

describe('waiters in a queue', () => {
  test('may leave while something is refunded', async () => {
    await exploreWaiters({ limit: limits.gcra, taken: 1, waiters: [{ leaves: true }] }, 50)
  })

  test('find their way also when time passes while the store is asked', async () => {
    const waiters = [{ leaves: true }, { maxWait: 400 }]
    await exploreWaiters({ limit: limits.gcra, taken: 0, waiters, slow: 1 }, 100)
  })

  test('go on when the store fails one of them', async () => {
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
