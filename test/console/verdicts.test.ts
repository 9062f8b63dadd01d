import { createServer, request as httpRequest, type Server } from 'node:http'
import { consoleFor } from '@sluice/console'
import {
  byHeader,
  byIp,
  byPath,
  byUser,
  compose,
  fixedWindow,
  type HttpContext,
  ipRanges,
  type KeyFunction,
  list,
  type ManagedStore,
  memoryStore,
  type RateLimitOptions,
  redisStore,
  storeList,
  tokenBucket,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { authorize, portOf, withBody } from './support.js'

// What the page says of a client is what its next request gets: by one decision, of a peek.

/** For longer runs by hand. */
const RUNS = Number(process.env.SLUICE_VERDICTS ?? 200)
const SEED = Number(process.env.SLUICE_VERDICTS_SEED ?? 20261130)

let redis: RedisServer
beforeAll(async () => {
  ;({ server: redis } = await redisForTests())
})
const open = closedAfterEach()

interface App {
  readonly user: string
  readonly tier: string
}

interface Sent extends App {
  readonly ip: string
  readonly key: string
  readonly path: string
  readonly method: string
}

const IPS = ['192.0.2.7', '198.18.4.9', '2001:db8:1:2::5', '2001:db8:1:3::5']
const USERS = ['ann', 'bob']
const KEYS = ['key-1', 'key-2']
const PATHS = ['/search', '/login', '/other']
const METHODS = ['GET', 'POST']
const TIERS = ['free', 'paid']
const NETWORKS = ['198.18.4.0/24', '192.0.2.0/28', '2001:db8:1::/56', '2001:db8:1:2::/64', '192.0.2.7']

const one = <T>(...of: readonly T[]) => fc.constantFrom(...of)
const some = <T>(of: readonly T[]) => fc.subarray([...of], { maxLength: 2 })
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined, freq: 3 })
const sent: fc.Arbitrary<Sent> = fc.record({
  ip: one(...IPS),
  user: one(...USERS),
  key: one(...KEYS),
  path: one(...PATHS),
  method: one(...METHODS),
  tier: one(...TIERS),
})
/** By kind, as documents have them. */
const listed = fc.record({ ip: maybe(some(NETWORKS)), user: maybe(some(USERS)) })
const named = maybe(fc.subarray(['vip', 'abusers']))
const enforce = maybe(fc.oneof(fc.constant({ mode: 'report' as const }), fc.record({ percent: one(0, 50, 100) })))
const amount = fc.record({ limit: fc.integer({ min: 0, max: 3 }), algorithm: maybe(one('tokenBucket')) })
const keyData = one<unknown>('ip', 'user', 'header:x-api-key', ['ip', 'user'], ['ip', 'path'], {
  ip: { ipv6Prefix: 56 },
})

type Amount = { readonly limit: number; readonly algorithm?: string | undefined }
const limitData = ({ limit, algorithm }: Amount) =>
  algorithm ? { algorithm, capacity: limit + 1, refill: 1, every: '1h' } : { limit, window: '1h' }

const policyData = fc
  .record({
    match: maybe(fc.record({ paths: maybe(some(PATHS)), methods: maybe(some(METHODS)) })),
    key: keyData,
    amounts: fc.array(amount, { minLength: 1, maxLength: 2 }),
    tiered: fc.boolean(),
    cost: maybe(one(0, 1, 3)),
    allow: maybe(listed),
    deny: maybe(listed),
    allowLists: named,
    denyLists: named,
    enforce,
    ban: maybe(fc.record({ after: one(2), within: one('1h'), for: fc.constant(['1h']) })),
  })
  .map(({ amounts, tiered, match, key, ...rest }) => {
    const limits = amounts.map(limitData)
    const kinds = [key].flat().map((part) => (typeof part === 'string' ? part : 'ip'))
    const countable = (lists: Record<string, unknown> | undefined) => {
      const all = Object.entries(clean(lists ?? {})).filter(
        ([kind, values]) => (kind === 'ip' || kinds.includes(kind)) && (values as []).length > 0,
      )
      return all.length > 0 ? Object.fromEntries(all) : undefined
    }
    const nonEmpty = <T>(all: readonly T[] | undefined) => (all && all.length > 0 ? all : undefined)
    return clean({
      ...rest,
      allow: countable(rest.allow),
      deny: countable(rest.deny),
      allowLists: nonEmpty(rest.allowLists),
      denyLists: nonEmpty(rest.denyLists),
      key,
      match: match && clean({ paths: nonEmpty(match.paths), methods: nonEmpty(match.methods) }),
      ...(tiered ? { tier: 'plan', tiers: { free: limits, paid: [{ limit: 5, window: '1h' }] } } : { limits }),
    })
  })

const overrides = fc.array(
  fc.record({ policy: one('p0'), range: one(...NETWORKS), limits: fc.constant([{ limit: 0 }]) }),
  { maxLength: 1 },
)

function clean(given: object): object {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

const code = fc.record({
  keys: fc.array(one('ip', 'ip56', 'user', 'header', 'ip+user', 'ip+path'), { minLength: 1, maxLength: 2 }),
  amounts: fc.array(amount, { minLength: 1, maxLength: 2 }),
  tiered: fc.boolean(),
  cost: maybe(one<'1' | '3' | 'function'>('1', '3', 'function')),
  allow: maybe(some(NETWORKS)),
  deny: maybe(some(NETWORKS)),
  byList: maybe(one('allow', 'deny')),
  skips: fc.boolean(),
  enforce,
  anonymous: maybe(one<'by-ip' | 'skip'>('by-ip', 'skip')),
})

const KEY_FUNCTIONS: Readonly<Record<string, KeyFunction<App>>> = {
  ip: byIp(),
  ip56: byIp({ ipv6Prefix: 56 }),
  user: byUser((app: App) => app.user),
  header: byHeader('x-api-key'),
  'ip+user': compose(
    byIp(),
    byUser((app: App) => app.user),
  ),
  'ip+path': compose(byIp(), byPath()),
}

const situation = fc.record({
  document: maybe(fc.record({ policies: fc.array(policyData, { minLength: 1, maxLength: 3 }), overrides })),
  inCode: code,
  denyInCode: maybe(some(NETWORKS)),
  ofStore: fc.record({ allow: maybe(listed), deny: maybe(listed), named }),
  blocks: fc.array(
    fc.record({
      identity: fc.oneof(
        fc.record({ ip: one(...IPS, ...NETWORKS) }),
        fc.record({ user: one(...USERS) }),
        fc.record({ 'header:x-api-key': one(...KEYS) }),
      ),
      policy: maybe(one('web')),
    }),
    { maxLength: 1 },
  ),
  entries: fc.array(
    fc.record({
      list: one('vip', 'abusers'),
      identity: fc.oneof(fc.record({ ip: one(...NETWORKS) }), fc.record({ user: one(...USERS) })),
    }),
    { maxLength: 2 },
  ),
  before: fc.array(sent, { maxLength: 6 }),
  asked: fc.array(sent, { minLength: 1, maxLength: 4 }),
  partly: fc.boolean(),
})
type Situation = typeof situation extends fc.Arbitrary<infer T> ? T : never

type StoreLists = { readonly allow?: unknown; readonly deny?: unknown }
type NewStore = (lists: StoreLists) => ManagedStore

function optionsInCode({ keys, amounts, tiered, cost, allow, deny, byList, skips, ...rest }: Situation['inCode']) {
  const limits = amounts.map(({ limit: units, algorithm }, i) => {
    const key = KEY_FUNCTIONS[keys[i % keys.length] as string] as KeyFunction<App>
    const name = `l${i}`
    return algorithm
      ? tokenBucket<App>({ capacity: units + 1, refill: 1, every: '1h', key, name })
      : fixedWindow<App>({ limit: units, window: '1h', key, name })
  })
  const costs = { '1': 1, '3': 3, function: (app: App) => (app.tier === 'paid' ? 3 : 1) }
  const listsOf = (effect: string, networks: string[] | undefined) =>
    networks && networks.length > 0
      ? [ipRanges(networks), ...(byList === effect ? [storeList('abusers')] : [])]
      : undefined
  return clean({
    ...rest,
    ...(tiered
      ? {
          tiers: { free: limits, paid: [fixedWindow<App>({ limit: 5, window: '1h', key: byIp() })] },
          tier: (app: App) => app.tier,
        }
      : { limits }),
    cost: cost && (tiered || amounts.every(({ limit }) => limit >= 0)) ? costs[cost] : undefined,
    allow: listsOf('allow', allow),
    deny: listsOf('deny', deny),
    skip: skips ? (app: App) => app.tier === 'paid' : undefined,
  })
}

/** The guard of a situation, and how the page's question for a request is answered. */
async function started(given: Situation, newStore: NewStore) {
  const lists = (of: { ip?: unknown; user?: unknown } | undefined) => {
    const all = clean(of ?? {})
    return Object.values(all).some((values) => (values as []).length > 0) ? [list(all as never)] : []
  }
  const { ofStore } = given
  const denying = [...lists(ofStore.deny), ...(ofStore.named ?? []).map((name) => storeList(name))]
  const store = newStore(clean({ allow: nonEmpty(lists(ofStore.allow)), deny: nonEmpty(denying) }))
  const name = 'web'
  const document =
    given.document &&
    (await policies.from({
      object: {
        version: 1,
        policies: Object.fromEntries(given.document.policies.map((each, i) => [`p${i}`, each])) as never,
        ...(takesOverrides(given.document.policies[0] as never) && { overrides: given.document.overrides }),
      },
      keys: { user: (app: App) => app.user },
      tiers: { plan: (app: App) => app.tier },
    }))
  const guard = document
    ? createGuard<App>(
        clean({
          store,
          name,
          policies: document,
          deny: given.denyInCode?.length ? ipRanges(given.denyInCode) : undefined,
        }) as RateLimitOptions<App>,
      )
    : createGuard<App>({ store, name, ...optionsInCode(given.inCode) } as RateLimitOptions<App>)
  const handle = consoleFor({
    store,
    authorize: authorize as never,
    ...(document ? { policies: { policies: document, name } } : { limiters: [guard] }),
  })
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  for (const { identity, policy } of given.blocks)
    await store.blocks?.add(identity as never, clean({ for: '1h', policy }) as never)
  for (const each of given.entries) await store.list?.(each.list).add(each.identity as never)
  const send = async (request: Sent) => (await guard(contextFor(request))).proceed
  const close = async () => {
    handle.close()
    await new Promise((resolve) => server.close(resolve))
    await document?.close()
    await store.close?.()
  }
  return { server, send, close }
}

/** Whether the overrides of situations fit: they are of addresses, and of the only limit. */
function takesOverrides({ key, limits }: { readonly key: unknown; readonly limits?: readonly object[] }): boolean {
  return JSON.stringify(key).includes('"ip"') && limits?.length === 1 && !('algorithm' in (limits[0] as object))
}

function nonEmpty<T>(all: readonly T[]): readonly T[] | undefined {
  return all.length > 0 ? all : undefined
}

function contextFor({ ip, user, key, path, method, tier }: Sent): HttpContext<App> {
  const headers = { 'x-api-key': key }
  return contextOf({ request: { user, tier }, ip, path, target: path, method, headers }) as HttpContext<App>
}

let clients = 0
/** From another address each time, as the console bounds the requests of one. */
function why(server: Server, body: object): Promise<{ now: Row[]; reported: Row[]; unknown: Row[] }> {
  const port = portOf(server)
  const localAddress = `127.0.${1 + (clients++ % 200)}.7`
  return new Promise((resolve, reject) => {
    const headers = withBody(port)
    const asked = httpRequest(
      { host: '127.0.0.1', port, path: '/api/why', method: 'POST', headers, localAddress, agent: false },
      (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => (response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text))))
      },
    )
    asked.on('error', reject)
    asked.end(JSON.stringify(body))
  })
}

interface Row {
  readonly limiter: string
  readonly needs?: readonly string[]
  readonly unless?: readonly string[]
  readonly error?: string
}

const ipOf = ({ ip }: Sent) => ({ kind: 'ip', value: ip })
const othersOf = ({ user, key }: Sent) => [
  { kind: 'user', value: user },
  { kind: 'header:x-api-key', value: key },
]

/** How many verdicts of each kind were held against requests. */
const held = { admitted: 0, refused: 0, open: 0 }

async function agree(given: Situation, newStore: NewStore): Promise<void> {
  const { server, send, close } = await started(given, newStore)
  try {
    for (const request of given.before) await send(request)
    for (const request of given.asked) {
      const { path, method, tier } = request
      const body = { identity: ipOf(request), ...(!given.partly && { with: othersOf(request) }), path, method, tier }
      const page = await why(server, body)
      const isGreen = page.now.length === 0 && page.unknown.length === 0
      const isRed = page.now.some(({ unless }) => unless === undefined)
      const proceeds = await send(request)
      if (isGreen) expect({ proceeds, page, request }).toMatchObject({ proceeds: true })
      if (isRed) expect({ proceeds, page, request }).toMatchObject({ proceeds: false })
      if (!given.partly) {
        // With all identities, only functions of the request are not known.
        const open = [
          ...page.unknown.flatMap(({ needs = ['error'] }) => needs),
          ...page.now.flatMap(({ unless = [] }) => unless),
        ]
        expect({ open: open.filter((each) => each !== 'request'), page }).toMatchObject({ open: [] })
      }
      held[isGreen ? 'admitted' : isRed ? 'refused' : 'open']++
    }
  } finally {
    await close()
  }
}

describe('the verdict of the page and the request that follows agree', () => {
  const inMemory: NewStore = (lists) => memoryStore(lists as never)

  test('in memory, for policies in code and as documents, lists, networks, prefixes, modes, tiers and paths', async () => {
    await fc.assert(
      fc.asyncProperty(situation, (given) => agree(given, inMemory)),
      { seed: SEED, numRuns: RUNS },
    )
    // Neither side is there by accident alone.
    for (const count of Object.values(held)) expect(count).toBeGreaterThan(50)
  }, 600_000)

  test('on Redis', async () => {
    const client = new Redis(redis.port)
    open.push(() => client.quit())
    let number = 0
    const prefix = `verdicts${Math.random().toString(36).slice(2)}`
    const onRedis: NewStore = (lists) =>
      redisStore(client, { prefix: `${prefix}${number++}:`, timeout: 10_000, ...(lists as object) })
    await fc.assert(
      fc.asyncProperty(situation, (given) => agree(given, onRedis)),
      { seed: 64, numRuns: 30 },
    )
  }, 120_000)
})
