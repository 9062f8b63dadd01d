// Deep: takes a quarter of an hour.
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { ensureBuiltCore } from '../../support/built-core.js'
import { SEED } from './choice.js'
import { note } from './report.js'
import { RETURN_WITHIN_MS, World } from './world.js'

beforeAll(ensureBuiltCore)

const TIMES = 100

/** Short outages, each over before or just after the processes notice. */
const OUTAGES = {
  'killed and started again': async (world: World, outageMs: number) => {
    world.server.kill('SIGKILL')
    await sleep(outageMs)
    await world.losing(() => world.server.restart())
  },
  'stopped and continued': async (world: World, outageMs: number) => {
    world.server.kill('SIGSTOP')
    await sleep(outageMs)
    world.server.kill('SIGCONT')
  },
}

for (const [how, causeOutage] of Object.entries(OUTAGES)) {
  test(`decisions are soon shared again after every outage of a Redis that is ${how}, over both clients`, {
    timeout: 400_000,
  }, async () => {
    const random = randomFrom(SEED)
    const world = await World.start({ apps: 2, everyMs: 20 })
    try {
      for (let n = 0; n < TIMES; n++) {
        await causeOutage(world, random(600))
        await world.isBack()
        await sleep(50 + random(100))
      }
      const { returns, faults, exits, unanswered } = await world.end()
      const sorted = [...returns].sort((a, b) => a - b)
      const inTime = returns.filter((tookMs) => tookMs <= RETURN_WITHIN_MS).length
      note('returns', how.replaceAll(' ', '-'), {
        how,
        times: TIMES,
        returns: returns.length,
        inTime,
        medianMs: sorted[sorted.length >> 1],
        worstMs: sorted.at(-1),
      })
      expect([inTime, unanswered, faults, exits]).toEqual([2 * TIMES, 0, [], []])
    } finally {
      await world.destroy()
    }
  })
}
