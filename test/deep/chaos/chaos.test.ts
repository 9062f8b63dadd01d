// Deep: takes a quarter of an hour. Runs alone: it judges all timers and warnings of its process.
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { ensureBuiltCore } from '../../support/built-core.js'
import { chosen, SEED } from './choice.js'
import { ASKED_EVERY_MS, TIMEOUT_MS } from './limits.js'
import { note } from './report.js'
import { dataDirectory, SCENARIOS, type Scenario } from './scenarios.js'
import { type Outcome, RETURN_WITHIN_MS, World } from './world.js'

beforeAll(ensureBuiltCore)

const ROUNDS = 5
/** The pause before, between and after faults. */
const CALM_MS = 600
/** The time allowed beyond a deadline. */
const BEYOND_DEADLINE_MS = 300

describe(`faults under load, over ioredis and redis (seed ${SEED})`, () => {
  test.each(chosen(Object.keys(SCENARIOS)))(
    '%s: decisions are in time, within their limits, and soon made by the store again',
    { timeout: 300_000 },
    async (name) => {
      const scenario = SCENARIOS[name] as Scenario
      const outcome = await run(scenario)
      note('scenarios', name, { title: scenario.title, rounds: ROUNDS, ...outcome, ledger: undefined })
      expectInvariants(outcome)
      scenario.expects?.(outcome)
    },
  )
})

async function run({ world: options = {}, keepsData, fault }: Scenario): Promise<Outcome> {
  const random = randomFrom(SEED)
  const data = keepsData ? dataDirectory() : undefined
  const world = await World.start({ ...options, ...(data && { settings: data.settings }), apps: 4 })
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(CALM_MS)
      await fault(world, random)
    }
    await sleep(CALM_MS)
    return await world.end()
  } finally {
    await world.destroy()
    data?.remove()
  }
}

function expectInvariants(outcome: Outcome): void {
  expect(outcome.requests).toBeGreaterThan(200)
  expect(outcome.refused).toBeGreaterThan(0)
  expect({
    unanswered: outcome.unanswered,
    faults: outcome.faults,
    exits: outcome.exits,
    excesses: outcome.excesses,
    overLocally: outcome.overLocally,
    keysForEver: outcome.keysForEver,
    permitsLost: outcome.permitsLost,
  }).toEqual({
    unanswered: 0,
    faults: [],
    exits: [],
    excesses: [],
    overLocally: 0,
    keysForEver: [],
    permitsLost: 0,
  })
  expect(outcome.keysSeen).toBeGreaterThan(0)
  expect(outcome.beyondDeadlineMs).toBeLessThan(BEYOND_DEADLINE_MS)
  for (const tookMs of outcome.returns) expect(tookMs).toBeLessThanOrEqual(RETURN_WITHIN_MS)
  // A decision without a reply in time may have been charged once, and nothing is charged twice. A killed process has at
  // most the requests of one deadline pending.
  const unreported = outcome.locally + outcome.kills * (TIMEOUT_MS / ASKED_EVERY_MS)
  for (const beyond of outcome.ledgerBeyond) expect(beyond).toBeLessThanOrEqual(unreported)
}
