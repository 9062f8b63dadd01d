// Deep: takes a quarter of an hour.
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'

import { note } from './report.js'
import { World } from './world.js'

beforeAll(ensureBuiltCore)

const SECONDS = 300

test('heaps and Redis do not grow under lasting load, and every key has an expiry at every moment', {
  timeout: 3_600_000,
}, async () => {
  const world = await World.start({ apps: 2 })
  try {
    const heaps: number[] = []
    const redis: number[] = []
    const startedMs = performance.now()
    while (performance.now() - startedMs < SECONDS * 1000) {
      await sleep(SECONDS * 50)
      heaps.push(Math.max(...(await Promise.all(world.apps.map((app) => app.memory())))))
      redis.push(Number((await world.server.fields('INFO', 'memory')).used_memory))
    }
    const outcome = await world.end()
    const [heap, data] = [heaps, redis].map(growth) as [Growth, Growth]
    const { requests, locally, keysSeen, keysForEver, overByStore, excesses } = outcome
    note('soak', 'load', { seconds: SECONDS, requests, locally, keysSeen, overByStore, heap, data })
    expect([outcome.faults, outcome.exits, outcome.unanswered, keysForEver, excesses]).toEqual([[], [], 0, [], []])

    expect(heap.bytes).toBeLessThan(1e6)
    expect(data.bytes).toBeLessThan(1e6)
  } finally {
    await world.destroy()
  }
})

interface Growth {
  readonly firstBytes: number
  readonly lastBytes: number
  /** Growth from the median of the second quarter to that of the last: at first, code is compiled and windows fill. */
  readonly bytes: number
}

function growth(samples: readonly number[]): Growth {
  const quarter = samples.length >> 2
  const median = (some: readonly number[]) => [...some].sort((a, b) => a - b)[some.length >> 1] as number
  const bytes = median(samples.slice(-quarter)) - median(samples.slice(quarter, 2 * quarter))
  return { firstBytes: samples[0] as number, lastBytes: samples.at(-1) as number, bytes }
}
