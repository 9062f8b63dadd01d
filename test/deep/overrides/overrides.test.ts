// Release: runs PostgreSQL.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type HttpContext, type MatchedPolicies, memoryStore } from '@sluice/core'
import {
  migratePostgres,
  OverrideConflict,
  type Policies,
  PostgresDocuments,
  policies,
  RedisDocuments,
} from '@sluice/policies'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt } from '../../support/built-core.js'
import { byEffort } from '../../support/effort.js'
import { startPostgres } from '../../support/postgres-server.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { type Client, type DocumentOverride, numberFor, type World } from './oracle.js'

// Random overrides, documents and ends in two processes that edit one another's overrides. After each change, the number in force of
// every client is that of an oracle: in the process that made it at once, and in the other one soon.

const RUNS = byEffort({ usual: 3, full: 120 })
const USERS = ['ann', 'anna', 'bob', 'an', 'x\ny'] as const
const ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.3.9'] as const
const RANGES = ['192.0.2.0/24', '192.0.2.0/30', '192.0.0.0/16'] as const
const PREFIXES = ['a', 'an', 'ann'] as const
const TIERS = ['free', 'paid'] as const

const CLIENTS: readonly Client[] = USERS.flatMap((user) =>
  ADDRESSES.flatMap((ip) => TIERS.map((tier) => ({ user, ip, tier }))),
)

const number = fc.integer({ min: 1, max: 1_000_000 })
/** How long an override lasts, in ms: some end while they are tried. */
const life = fc.oneof(fc.constant(3_600_000), fc.integer({ min: 30, max: 900 }))
const key = fc.oneof(
  fc.constantFrom(...USERS).map((user) => ({ user })),
  fc.constantFrom(...ADDRESSES).map((ip) => ({ ip })),
)
const inDocument = fc.record({
  scope: fc.oneof(
    key.map((each) => ({ key: each })),
    fc.constantFrom(...PREFIXES).map((user) => ({ prefix: { user } })),
    fc.constantFrom(...RANGES).map((range) => ({ range })),
  ),
  number,
  life: fc.option(life, { nil: undefined }),
})
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('set' as const), key, number, life, by: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('remove' as const), key, by: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('race' as const), key, number, life }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 600 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('apply' as const),
      overrides: fc.uniqueArray(inDocument, { maxLength: 5, selector: ({ scope }) => JSON.stringify(scope) }),
      free: number,
      paid: number,
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never

interface Taken {
  readonly world: World
  /** Whether the process that made the change has just read all that there is. */
  readonly isChanged: boolean
}

interface Place {
  readonly source: object
  readonly save: unknown
  readonly documents: Pick<PostgresDocuments, 'save' | 'version'>
  readonly env: Record<string, string>
  clear(): Promise<unknown>
  close(): Promise<unknown>
}

async function inRedis(): Promise<Place> {
  const server = await startRedis()
  const client = new Redis(server.url)
  return {
    source: { redis: client },
    save: client,
    documents: new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', 'sluice:'),
    env: { REDIS_URL: server.url },
    // As programs do: processes have to notice it.
    clear: () =>
      client.del(
        'sluice:policies:{default}:overrides',
        'sluice:policies:{default}:overrides:ends',
        'sluice:policies:{default}:overrides:mark',
      ),
    close: async () => {
      client.disconnect()
      await server.stop()
    },
  }
}

async function inPostgres(): Promise<Place> {
  const server = await startPostgres()
  const pool = new Pool({ connectionString: server.url, max: 4 })
  const query = (text: string, values?: readonly unknown[]) => pool.query(text, values as unknown[])
  await migratePostgres(query)
  return {
    source: { postgres: { pool, lookupTimeout: 10_000 } },
    save: pool,
    documents: new PostgresDocuments(query),
    env: { DATABASE_URL: server.url },
    clear: () => query('DELETE FROM sluice_overrides'),
    close: async () => {
      await pool.end()
      await server.stop()
    },
  }
}

describe.each([
  ['Redis', inRedis],
  ['PostgreSQL', inPostgres],
])('overrides in %s', (_name, open) => {
  let place: Place
  let here: Policies
  let other: ChildProcess
  const { changes } = memoryStore()
  beforeAll(async () => {
    ensureBuilt('core', 'policies')
    place = await open()
    await place.documents.save(textOf([], { free: 1, paid: 2 }), 0, '')
    const resolvers = { keys: { user: (c: Client) => c.user }, tiers: { plan: (c: Client) => c.tier } }
    here = await policies.from({ ...place.source, save: place.save, allowShrink: true, ...resolvers })
    const file = fileURLToPath(new URL('editor.js', import.meta.url))
    const { REDIS_URL: _redis, DATABASE_URL: _postgres, ...env } = process.env
    other = fork(file, { env: { ...env, ...place.env }, execArgv: [] })
    await once(other, 'message')
  })
  afterAll(async () => {
    other.disconnect()
    await here.close()
    await place.close()
  })

  async function ask(call: string, argument?: unknown): Promise<unknown> {
    other.send({ call, argument })
    const [{ result, error }] = (await once(other, 'message')) as [{ result?: unknown; error?: string }]
    if (error === 'OverrideConflict') throw new OverrideConflict(0, undefined)
    if (error !== undefined) throw new Error(error)
    return result
  }
  const change = (isOther: boolean, call: 'set' | 'remove', argument: object) =>
    isOther ? ask(call, argument) : here.overrides[call](argument as never, { by: 'here', changes })
  const numberHere = async (client: Client) =>
    ((await here.match(contextOf(client))) as MatchedPolicies<Client>).options.limits?.[0]?.limit
  const numberThere = (client: Client) => ask('number', client)

  /** Whether a process has the oracle's number for each client; any of both while an override ends. */
  async function isRight(world: World, numberOf: (client: Client) => Promise<unknown>): Promise<string | undefined> {
    for (const client of CLIENTS) {
      const before = numberFor(world, client, Date.now())
      const found = await numberOf(client)
      const after = numberFor(world, client, Date.now())
      if (found !== before && found !== after) return `${JSON.stringify(client)}: ${found}, not ${after}`
    }
    return undefined
  }

  test('the number in force is the one that the oracle says', { timeout: 3_600_000 }, async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      await place.clear()
      const table = new Map<string, { number: number; until: number }>()
      let world: World = { tiers: { free: 1, paid: 2 }, document: [], table }
      await apply([], world.tiers)
      for (const each of steps) {
        const taken = await take(each, world, table)
        world = taken.world
        if (!taken.isChanged || !('by' in each)) continue
        const numberOf = each.by ? numberThere : numberHere
        expect(await isRight(world, numberOf), `at once after ${JSON.stringify(each)}`).toBeUndefined()
      }
      for (const numberOf of [numberHere, numberThere]) {
        let wrong: string | undefined
        const isSettled = async () => {
          wrong = await isRight(world, numberOf)
          return wrong === undefined
        }
        await until('both have it', isSettled, { withinMs: 20_000 }).catch(() => {
          throw new Error(wrong)
        })
      }
    })
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  })

  async function take(each: Step, world: World, table: Map<string, { number: number; until: number }>): Promise<Taken> {
    if (each.what === 'wait') {
      await sleep(each.ms)
      return { world, isChanged: false }
    }
    if (each.what === 'apply') {
      const document = each.overrides.map(({ scope, number: own, life: ms }) => {
        return { ...scope, number: own, until: ms === undefined ? undefined : Date.now() + ms } as DocumentOverride
      })
      const tiers = { free: each.free, paid: each.paid }
      await apply(document, tiers)
      return { world: { ...world, document, tiers }, isChanged: false }
    }
    const [[kind, value] = ['', '']] = Object.entries(each.key)
    const client = `${kind}=${value}`
    const known = table.get(client)
    const of = { policy: 'api', key: each.key }
    if (each.what === 'remove') {
      const before = known !== undefined && known.until > Date.now()
      const removed = await change(each.by, 'remove', of)
      const after = known !== undefined && known.until > Date.now()
      expect([before, after]).toContain(removed)
      table.delete(client)
      return { world, isChanged: removed === true }
    }
    const end = Date.now() + each.life
    const endOfKnown = known?.until ?? 0
    const wasInForce = endOfKnown > Date.now()
    const expected = (await here.overrides.get(of))?.version ?? 0
    const override = { ...of, limits: [{ limit: each.number }], until: end, expected }
    const sides = each.what === 'race' ? [false, true] : [each.by]
    const results = await Promise.allSettled(sides.map((isOther) => change(isOther, 'set', override)))
    const won = results.filter(({ status }) => status === 'fulfilled').length
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    // The document may have one for this client; or this one, or that before it, has ended meanwhile.
    const isOfDocument = reasons.some((reason) => /PoliciesError/.test(`${reason?.constructor?.name} ${reason}`))
    const hasEndedMeanwhile = Date.now() >= end || wasInForce !== endOfKnown > Date.now()
    if (!isOfDocument && !hasEndedMeanwhile) expect(won, String(reasons)).toBe(1)
    // The second one wins as well, if the first has ended by then.
    if (Date.now() < end) expect(won).toBeLessThanOrEqual(1)
    if (won > 0) table.set(client, { number: each.number, until: end })
    return { world, isChanged: won > 0 && sides.length === 1 }
  }

  async function apply(document: readonly DocumentOverride[], tiers: Readonly<Record<string, number>>): Promise<void> {
    const version = await place.documents.save(textOf(document, tiers), await place.documents.version(), '')
    await until('the version is in force', async () => here.version === String(version))
    await until('the version is in force there', async () => (await ask('version')) === String(version))
  }
})

function textOf(document: readonly DocumentOverride[], { free, paid }: Readonly<Record<string, number>>): string {
  const overrides = document.map(({ number: limit, until: end, ...scope }) => ({
    policy: 'api',
    ...scope,
    limits: [{ limit }],
    ...(end !== undefined && { until: new Date(end).toISOString() }),
  }))
  const limits = (limit: unknown) => [{ limit, window: '1m', algorithm: 'fixedWindow' }]
  const tiers = { free: limits(free), paid: limits(paid) }
  return JSON.stringify({ version: 1, policies: { api: { key: 'user', tier: 'plan', tiers } }, overrides })
}

function contextOf(client: Client): HttpContext<Client> {
  return {
    request: client,
    method: 'GET',
    path: '/',
    target: '/',
    ip: client.ip,
    route: undefined,
    response: { on() {}, removeListener() {} },
    header: () => undefined,
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}
