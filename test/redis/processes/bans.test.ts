import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const PROCESSES = 4
const REQUESTS_EACH = 250

interface Told {
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

async function ask(worker: ChildProcess, run: object): Promise<Told> {
  worker.send(run)
  const [told] = (await once(worker, 'message')) as [Told]
  return told
}

const count = (told: readonly Told[], reason: string) =>
  told.flatMap(({ reasons }) => reasons).filter((r) => r === reason).length
const bansOf = (told: readonly Told[]) => [
  ...new Set(told.flatMap(({ bans }) => bans.map((ban) => JSON.stringify(ban)))),
]

test('of 4 × 250 requests at the edge, as many are admitted and refused as ever, and exactly one ban starts', async () => {
  const run = { name: 'edge', key: 'k', requests: REQUESTS_EACH, ban: { after: 20, within: '1h', for: ['1h', '2h'] } }
  const told = await Promise.all(workers.map((worker) => ask(worker, run)))
  expect(count(told, 'admitted')).toBe(5)
  // The twentieth refusal is told of the ban.
  expect(count(told, 'limited')).toBe(19)
  expect(count(told, 'banned')).toBe(PROCESSES * REQUESTS_EACH - 24)
  expect(bansOf(told)).toHaveLength(1)
  expect(told[0]?.bans[0] ?? told[1]?.bans[0]).toMatchObject({ rung: 1, strikes: 20 })
})

test('each ban in turn is of the next rung, one for all processes', async () => {
  const run = {
    name: 'rungs',
    key: 'k',
    requests: REQUESTS_EACH,
    ban: { after: 3, within: '1h', for: [300, 600, 900] },
  }
  const rungs: number[] = []
  for (let n = 0; n < 5; n++) {
    const told = await Promise.all(workers.map((worker) => ask(worker, run)))
    const bans = bansOf(told).map((ban) => JSON.parse(ban) as Told['bans'][number])
    rungs.push(...bans.map(({ rung }) => rung))
    const end = Math.max(...bans.map(({ until }) => until))
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, end - Date.now()) + 20))
  }
  // A slow machine may begin one within a round; none is left out, and none comes twice.
  const expected = rungs.map((_, i) => Math.min(3, i + 1))
  expect([...rungs].sort()).toEqual(expected)
})

test('strikes by hand of all processes at once start one ban, too', async () => {
  const ban = { after: 100, within: '1h', for: ['1h', '2h'] }
  const run = { name: 'by-hand', key: 'k', requests: REQUESTS_EACH, strikes: true, ban }
  const told = await Promise.all(workers.map((worker) => ask(worker, run)))
  expect(bansOf(told)).toHaveLength(1)
  expect(told.flatMap(({ bans }) => bans)).toHaveLength(PROCESSES * REQUESTS_EACH - 99)
})

test('a ban that one process starts refuses the very next decision of another', async () => {
  const ban = { after: 2, within: '1h', for: ['1h'] }
  const [here, there] = workers as [ChildProcess, ChildProcess]
  for (let n = 0; n < 20; n++) {
    const run = { name: 'next', key: `k${n}`, requests: 1, ban }
    // The other has decided on it, and seen that no client is banned.
    expect((await ask(there, run)).reasons).toEqual(['admitted'])
    const told = await ask(here, { ...run, requests: 6 })
    expect(told.reasons).toEqual(['admitted', 'admitted', 'admitted', 'admitted', 'limited', 'banned'])
    expect((await ask(there, run)).reasons).toEqual(['banned'])
  }
})

test('four processes agree on who is banned, also after Redis has lost all of it', async () => {
  const ban = { after: 2, within: '1h', for: ['1h'] }
  const [here] = workers as [ChildProcess]
  const run = { name: 'lasting', key: 'k', requests: 10, ban }
  await ask(here, run)
  const none = { ...run, requests: 0 }
  await until('all know of the same bans', async () => {
    const told = await Promise.all(workers.map((worker) => ask(worker, none)))
    return (told[0]?.known ?? 0) > 0 && told.every(({ known }) => known === told[0]?.known)
  })
  await server.flush()
  const told = await Promise.all(workers.map((worker) => ask(worker, run)))
  expect(count(told, 'banned')).toBe(PROCESSES * 10)
  expect(bansOf(told)).toHaveLength(1)
})
