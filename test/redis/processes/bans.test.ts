// Release: runs several processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const PROCESSES = 4
const REQUESTS_EACH = 250

interface Outcome {
  /** How many blocks and bans the process knows. */
  readonly known: number
  readonly reasons: readonly string[]
  readonly bans: readonly { readonly rung: number; readonly strikes: number; readonly until: number }[]
}

let server: RedisServer
let workers: ChildProcess[] = []
beforeAll(async () => {
  ensureBuiltCore()
  server = await startRedis()
  const env = { ...process.env, REDIS_URL: server.url }
  const file = fileURLToPath(new URL('banner.js', import.meta.url))
  workers = Array.from({ length: PROCESSES }, () => fork(file, { env, execArgv: [] }))
  await Promise.all(workers.map((worker) => once(worker, 'message')))
})
afterAll(async () => {
  for (const worker of workers) worker.disconnect()
  await server.stop()
})

async function ask(worker: ChildProcess, run: object): Promise<Outcome> {
  worker.send(run)
  const [outcome] = (await once(worker, 'message')) as [Outcome]
  return outcome
}

const count = (outcomes: readonly Outcome[], reason: string) =>
  outcomes.flatMap(({ reasons }) => reasons).filter((r) => r === reason).length
const bansOf = (outcomes: readonly Outcome[]) => [
  ...new Set(outcomes.flatMap(({ bans }) => bans.map((ban) => JSON.stringify(ban)))),
]

test('concurrent requests of four processes start exactly one ban, after exactly the configured strikes', async () => {
  const run = { name: 'edge', key: 'k', requests: REQUESTS_EACH, ban: { after: 20, within: '1h', for: ['1h', '2h'] } }
  const outcomes = await Promise.all(workers.map((worker) => ask(worker, run)))
  expect(count(outcomes, 'admitted')).toBe(5)
  // The twentieth refusal reports the ban.
  expect(count(outcomes, 'limited')).toBe(19)
  expect(count(outcomes, 'banned')).toBe(PROCESSES * REQUESTS_EACH - 24)
  expect(bansOf(outcomes)).toHaveLength(1)
  expect(outcomes[0]?.bans[0] ?? outcomes[1]?.bans[0]).toMatchObject({ rung: 1, strikes: 20 })
})

test('each ban takes the next rung, once for all processes', async () => {
  const run = {
    name: 'rungs',
    key: 'k',
    requests: REQUESTS_EACH,
    ban: { after: 3, within: '1h', for: [300, 600, 900] },
  }
  const bans = new Set<string>()
  for (let n = 0; n < 5; n++) {
    const outcomes = await Promise.all(workers.map((worker) => ask(worker, run)))
    // On a slow machine a process may know of an end a little late, and report the last round's ban once more.
    for (const ban of bansOf(outcomes)) bans.add(ban)
    const end = Math.max(...[...bans].map((ban) => JSON.parse(ban).until))
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, end - Date.now()) + 20))
  }
  // On a slow machine a second ban may begin within a round; no rung is skipped or repeated.
  const rungs = [...bans].map((ban): number => JSON.parse(ban).rung)
  const expected = rungs.map((_, i) => Math.min(3, i + 1))
  expect(rungs.sort()).toEqual(expected)
})

test('concurrent strikes by hand from all processes start exactly one ban', async () => {
  const ban = { after: 100, within: '1h', for: ['1h', '2h'] }
  const run = { name: 'by-hand', key: 'k', requests: REQUESTS_EACH, strikes: true, ban }
  const outcomes = await Promise.all(workers.map((worker) => ask(worker, run)))
  expect(bansOf(outcomes)).toHaveLength(1)
  expect(outcomes.flatMap(({ bans }) => bans)).toHaveLength(PROCESSES * REQUESTS_EACH - 99)
})

test('a ban that one process starts refuses the very next decision of another', async () => {
  const ban = { after: 2, within: '1h', for: ['1h'] }
  const [here, there] = workers as [ChildProcess, ChildProcess]
  for (let n = 0; n < 20; n++) {
    const run = { name: 'next', key: `k${n}`, requests: 1, ban }
    // The other process has decided on the key, and has seen no ban.
    expect((await ask(there, run)).reasons).toEqual(['admitted'])
    const { reasons } = await ask(here, { ...run, requests: 6 })
    expect(reasons).toEqual(['admitted', 'admitted', 'admitted', 'admitted', 'limited', 'banned'])
    expect((await ask(there, run)).reasons).toEqual(['banned'])
  }
})

test('four processes agree on a ban, even after Redis loses all its data', async () => {
  const ban = { after: 2, within: '1h', for: ['1h'] }
  const [here] = workers as [ChildProcess]
  const run = { name: 'lasting', key: 'k', requests: 10, ban }
  await ask(here, run)
  const none = { ...run, requests: 0 }
  await until('all processes know the same bans', async () => {
    const outcomes = await Promise.all(workers.map((worker) => ask(worker, none)))
    return (outcomes[0]?.known ?? 0) > 0 && outcomes.every(({ known }) => known === outcomes[0]?.known)
  })
  await server.flush()
  const outcomes = await Promise.all(workers.map((worker) => ask(worker, run)))
  expect(count(outcomes, 'banned')).toBe(PROCESSES * 10)
  expect(bansOf(outcomes)).toHaveLength(1)
})
