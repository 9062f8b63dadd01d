// Release: decides hundreds of situations.
import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { consoleFor } from '@sluice/console'
import { type HttpContext, memoryStore, redisStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { agree, noneHeld, type Running } from './agreement.js'
import { headersOf, type NewStore, prepared, type Sent, type Situation, situation } from './situations.js'
import { authorize } from './support.js'

// What the page says of a client is what its next request gets: by one decision, of a peek. `deep/console/verdicts` has the same
// over HTTP, in each framework.

/** For longer runs by hand. */
const RUNS = Number(process.env.SLUICE_VERDICTS ?? 200)
const RUNS_ON_REDIS = Number(process.env.SLUICE_VERDICTS_REDIS ?? 30)
const SEED = Number(process.env.SLUICE_VERDICTS_SEED ?? 20261130)

let redis: RedisServer
beforeAll(async () => {
  ;({ server: redis } = await redisForTests())
})
const open = closedAfterEach()

/** The guard of a situation without a framework, and its console. */
async function started(given: Situation, newStore: NewStore): Promise<Running> {
  const { store, options, shown, close } = await prepared(given, newStore)
  const guard = createGuard(options)
  const handle = consoleFor({ store, authorize: authorize as never, ...(shown(guard) as object) })
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxyTrust = given.isForgeable ? { everyone: 'trust', remedy: 'name it', app: {} } : ('named' as const)
  return {
    server,
    path: '',
    send: async (request) => (await guard({ ...contextFor(request), proxyTrust })).proceed,
    async close() {
      handle.close()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
}

function contextFor(request: Sent): HttpContext<never> {
  const { ip, path, method, body } = request
  const headers = headersOf(request)
  const raw = { httpVersionMajor: 1, headers: { 'content-length': String(body) } }
  const response = Object.assign(new EventEmitter(), { req: raw })
  return contextOf({ request: { headers }, ip, path, target: path, method, headers, response }) as HttpContext<never>
}

/** Found by longer runs. The share that is enforced goes by the identity that a list denies first, which need not be known. */
const FOUND = [
  {
    document: {
      policies: [
        { allow: { user: ['bob'] }, enforce: { percent: 50 }, key: 'user', limits: [{ limit: 0, window: '1h' }] },
        { enforce: { mode: 'report' }, key: 'ip', limits: [{ limit: 0, window: '1h' }] },
      ],
      overrides: [],
    },
    denyInCode: ['2001:db8:1:2::/64'],
    ofStore: { deny: { user: ['bob'] } },
    blocks: [],
    entries: [],
    before: [],
    asked: [
      { ip: '2001:db8:1:2::5', user: 'bob', key: 'key-1', path: '/search', method: 'GET', tier: 'free', body: 0 },
      { ip: '192.0.2.7', user: 'ann', key: 'key-1', path: '/search', method: 'GET', tier: 'free', body: 0 },
    ],
    partly: true,
  },
] as unknown as Situation[]

describe('the verdict of the page and the request that follows agree', () => {
  const inMemory: NewStore = (lists) => memoryStore(lists as never)

  test('in memory, for policies in code and as documents, lists, networks, prefixes, modes, tiers and paths', async () => {
    const held = noneHeld()
    await fc.assert(
      fc.asyncProperty(situation, (given) => agree(given, () => started(given, inMemory), held)),
      { seed: SEED, numRuns: RUNS, examples: FOUND.map((given): [Situation] => [given]) },
    )
    // Neither side is there by accident alone.
    const { tooLarge, ...others } = held
    for (const count of Object.values(others)) expect(count).toBeGreaterThan(50)
    expect(tooLarge).toBeGreaterThan(0)
  }, 600_000)

  test('on Redis', async () => {
    const client = new Redis(redis.port)
    open.push(() => client.quit())
    let number = 0
    const prefix = `verdicts${Math.random().toString(36).slice(2)}`
    const onRedis: NewStore = (lists) =>
      redisStore(client, { prefix: `${prefix}${number++}:`, timeout: 10_000, ...(lists as object) })
    await fc.assert(
      fc.asyncProperty(situation, (given) => agree(given, () => started(given, onRedis), noneHeld())),
      { seed: SEED, numRuns: RUNS_ON_REDIS },
    )
  }, 600_000)
})
