import {
  byHeader,
  byIp,
  byPath,
  byUser,
  compose,
  fixedWindow,
  ipRanges,
  type KeyFunction,
  list,
  type ManagedStore,
  type RateLimitOptions,
  storeList,
  tokenBucket,
  trap,
} from '@sluice/core'
import { policies } from '@sluice/policies'
import fc from 'fast-check'

// Random situations in which a client is asked about: policies, lists, blocks, and requests before.

/** A request of any framework: its user and its tier are in headers. */
interface App {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

const userOf = ({ headers }: App) => headers['x-user'] as string
const tierOf = ({ headers }: App) => headers['x-tier'] as string

export interface Sent {
  readonly user: string
  readonly tier: string
  readonly ip: string
  readonly key: string
  readonly path: string
  readonly method: string
  /** Bytes of its body. */
  readonly body: number
}

export function headersOf({ user, tier, key }: Sent): Record<string, string> {
  return { 'x-user': user, 'x-tier': tier, 'x-api-key': key }
}

const IPS = ['192.0.2.7', '198.18.4.9', '2001:db8:1:2::5', '2001:db8:1:3::5']
const USERS = ['ann', 'bob']
const KEYS = ['key-1', 'key-2']
const PATHS = ['/search', '/login', '/other', '/.env']
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
  body: one(0, 0, 5, 50),
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
  predicate: maybe(one('allow', 'deny')),
  maxBody: maybe(one(10)),
  banAfter: maybe(one(1, 2)),
  isTrapped: fc.boolean(),
})

const KEY_FUNCTIONS: Readonly<Record<string, KeyFunction<App>>> = {
  ip: byIp(),
  ip56: byIp({ ipv6Prefix: 56 }),
  user: byUser(userOf),
  header: byHeader('x-api-key'),
  'ip+user': compose(byIp(), byUser(userOf)),
  'ip+path': compose(byIp(), byPath()),
}

export const situation = fc.record({
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
  /** Whether the framework takes the address of anyone for that of the client. */
  isForgeable: maybe(fc.constant(true)),
  before: fc.array(sent, { maxLength: 6 }),
  asked: fc.array(sent, { minLength: 1, maxLength: 4 }),
  partly: fc.boolean(),
})
export type Situation = typeof situation extends fc.Arbitrary<infer T> ? T : never

type StoreLists = { readonly allow?: unknown; readonly deny?: unknown }
export type NewStore = (lists: StoreLists) => ManagedStore

const isPaid = (app: App) => tierOf(app) === 'paid'

function optionsInCode(given: Situation['inCode']): RateLimitOptions<App> {
  const { keys, amounts, tiered, cost, allow, deny, byList, skips, predicate, maxBody, banAfter, isTrapped, ...rest } =
    given
  const limits = amounts.map(({ limit: units, algorithm }, i) => {
    const key = KEY_FUNCTIONS[keys[i % keys.length] as string] as KeyFunction<App>
    const name = `l${i}`
    return algorithm
      ? tokenBucket<App>({ capacity: units + 1, refill: 1, every: '1h', key, name })
      : fixedWindow<App>({ limit: units, window: '1h', key, name })
  })
  const costs = { '1': 1, '3': 3, function: (app: App) => (isPaid(app) ? 3 : 1) }
  const listsOf = (effect: string, networks: string[] | undefined) =>
    nonEmpty([
      ...(networks && networks.length > 0
        ? [ipRanges(networks), ...(byList === effect ? [storeList('abusers')] : [])]
        : []),
      ...(predicate === effect ? [isPaid] : []),
    ])
  const kinds = amounts.map((_, i) => keys[i % keys.length])
  const bansByIp = !tiered && kinds.every((kind) => kind === 'ip' || kind === 'ip56')
  return clean({
    ...rest,
    ...(tiered
      ? { tiers: { free: limits, paid: [fixedWindow<App>({ limit: 5, window: '1h', key: byIp() })] }, tier: tierOf }
      : { limits }),
    cost: cost && (tiered || amounts.every(({ limit }) => limit >= 0)) ? costs[cost] : undefined,
    allow: listsOf('allow', allow),
    deny: listsOf('deny', deny),
    skip: skips ? isPaid : undefined,
    body: maxBody && { max: maxBody },
    ban:
      banAfter && bansByIp
        ? clean({ after: banAfter, within: '1h', for: ['1h'], trap: isTrapped ? trap(['/.env']) : undefined })
        : undefined,
  }) as RateLimitOptions<App>
}

const NAME = 'web'

/** The store of a situation, its document and the options of its guard, with its blocks and entries. */
export async function prepared(given: Situation, newStore: NewStore) {
  const lists = (of: { ip?: unknown; user?: unknown } | undefined) => {
    const all = clean(of ?? {})
    return Object.values(all).some((values) => (values as []).length > 0) ? [list(all as never)] : []
  }
  const { ofStore } = given
  const denying = [...lists(ofStore.deny), ...(ofStore.named ?? []).map((name) => storeList(name))]
  const store = newStore(clean({ allow: nonEmpty(lists(ofStore.allow)), deny: nonEmpty(denying) }))
  const document = given.document && (await documentOf(given.document))
  const options = document
    ? clean({
        store,
        name: NAME,
        policies: document,
        deny: given.denyInCode?.length ? ipRanges(given.denyInCode) : undefined,
      })
    : { store, name: NAME, ...optionsInCode(given.inCode) }
  for (const { identity, policy } of given.blocks)
    await store.blocks?.add(identity as never, clean({ for: '1h', policy }) as never)
  for (const each of given.entries) await store.list?.(each.list).add(each.identity as never)
  return {
    store,
    options: options as RateLimitOptions<never>,
    /** What a console is given of it, with the limiter in code where there is no document. */
    shown: (limiter: object) => (document ? { policies: { policies: document, name: NAME } } : { limiters: [limiter] }),
    async close() {
      await document?.close()
      await store.close?.()
    },
  }
}

async function documentOf({ policies: all, overrides }: NonNullable<Situation['document']>) {
  return policies.from({
    object: {
      version: 1,
      policies: Object.fromEntries(all.map((each, i) => [`p${i}`, each])) as never,
      ...(takesOverrides(all[0] as never) && { overrides }),
    },
    keys: { user: userOf as never },
    tiers: { plan: tierOf as never },
  })
}

/** Whether the overrides of situations fit: they are of addresses, and of the only limit. */
function takesOverrides({ key, limits }: { readonly key: unknown; readonly limits?: readonly object[] }): boolean {
  return JSON.stringify(key).includes('"ip"') && limits?.length === 1 && !('algorithm' in (limits[0] as object))
}

function nonEmpty<T>(all: readonly T[]): readonly T[] | undefined {
  return all.length > 0 ? all : undefined
}
