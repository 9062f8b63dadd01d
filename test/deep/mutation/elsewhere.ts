import { createLimiter, type Limit, type Store } from '@sluice/core'
import { Redis } from 'ioredis'
import { ResultReader } from '../../../packages/core/src/redis/scripts/decode.js'
import { encode, type Keys, type PlanText, planText } from '../../../packages/core/src/redis/scripts/encode.js'
import { decideScriptFor } from '../../../packages/core/src/redis/scripts/script.js'
import { crossSlotsScript } from '../../../packages/core/src/redis/scripts/scripts.generated.js'
import type { Plan, StoreRequest, StoreResult } from '../../../packages/core/src/store/store.js'
import { freePort } from '../../../scripts/lib/ports.js'
import { algorithms } from '../../support/algorithms.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { SLOTS, slotOfIdentity } from '../../support/slots.js'
import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

/** The server has the slots below this one. */
const HERE = SLOTS / 2
const NOW = 1_760_000_000_000
const HOUR_MS = 3_600_000

/** A node of a cluster with half of the slots; started once, and stopped with the tests. */
let started: Promise<{ server: RedisServer; connection: Redis }> | undefined
async function halfCluster() {
  const settings = ['cluster-enabled yes', `cluster-port ${await freePort()}`, 'cluster-require-full-coverage no']
  const server = await startRedis({ settings })
  await server.call('CLUSTER', 'ADDSLOTSRANGE', 0, HERE - 1)
  while ((await server.fields('CLUSTER', 'INFO')).cluster_state !== 'ok')
    await new Promise((done) => setTimeout(done, 20))
  return { server, connection: new Redis(server.url) }
}
function halfClusterStarted() {
  started ??= halfCluster()
  return started
}

/** Identities whose keys are on the server, or elsewhere. */
function identities(isHere: boolean, count: number): string[] {
  const found: string[] = []
  for (let n = 0; found.length < count; n++) if (slotOfIdentity(`user-${n}`) < HERE === isHere) found.push(`user-${n}`)
  return found
}
const here = identities(true, 3) as [string, string, string]
const [away] = identities(false, 1) as [string]

/** The request of a limiter to its store. */
async function requestOf(limits: Limit<string>[], key: string): Promise<StoreRequest> {
  let request: StoreRequest | undefined
  const store = {
    decide: (given: StoreRequest) => {
      request = given
      return Promise.reject(new Error('this store only records the request'))
    },
  }
  await createLimiter({ name: 'half', store: store as unknown as Store, limits })
    .consume(key)
    .catch(() => {})
  if (!request) throw new Error('the limiter sent no request')
  return request
}

/** Makes the server decide by one script; undefined for requests whose keys are elsewhere. */
async function decide(
  redis: MutatedRedis,
  requests: readonly StoreRequest[],
  keys: Keys = 'undeclared',
): Promise<(StoreResult | undefined)[]> {
  const { connection } = await halfClusterStarted()
  const plan = (requests[0] as StoreRequest).plan
  const texts = new Map<Plan, PlanText>([[plan, planText(plan)]])
  const text = texts.get(plan) as PlanText
  const groups = new Map([[plan, requests.map((request) => ({ request }))]])
  const encoded = encode(groups, () => text, {
    prefix: 'sluice:v1:',
    now: NOW,
    keys,
    parts: text.parts,
    marker: undefined,
    waitingMarker: undefined,
  })
  const source = redis.mutated(decideScriptFor(text.parts).sha1)
  const reply = await connection.callBuffer('EVAL', source, encoded.keys.length, ...encoded.keys, ...encoded.args)
  const results = new ResultReader(reply)
  const all = requests.map((request) => results.next(request, text.reports))
  results.end()
  return all
}

const textOf = (results: readonly (StoreResult | undefined)[]) =>
  results.map((result) => (result ? (result.block?.reason ?? result.values[result.offset]) : 'elsewhere')).join()

async function expectResults(
  results: Promise<(StoreResult | undefined)[]>,
  expected: string,
): Promise<string | undefined> {
  const text = textOf(await results)
  return text === expected ? undefined : `${text} instead of ${expected}`
}

async function server(): Promise<RedisServer> {
  return (await halfClusterStarted()).server
}

async function first(...wrong: (() => Promise<string | undefined>)[]): Promise<string | undefined> {
  for (const each of wrong) {
    const failure = await each()
    if (failure !== undefined) return failure
  }
  return undefined
}

/** Scripts with undeclared keys, on a node that does not have all of them. */
export const elsewhereChecks: readonly Check[] = Object.entries(algorithms).map(([name, limit]) => ({
  name: `elsewhere: ${name}`,
  run: async ({ redis }) => {
    await (await server()).flush()
    const limits = [limit(3, HOUR_MS)]
    const of = async (identity: string) => ({ ...(await requestOf(limits, identity)), permitId: String(Math.random()) })
    const [one, two, other] = [await of(here[0]), await of(here[1]), await of(away)]
    const plan = one.plan
    const same = (request: StoreRequest, permitId = '') => ({
      ...request,
      plan,
      permitId: permitId || request.permitId,
    })
    const block = `sluice:v1:{key=${here[2]}}:half:block`
    return first(
      () => expectResults(decide(redis, [one, same(other), same(two)]), '2,elsewhere,2'),
      () =>
        expectResults(
          decide(redis, [same(other), same(other), same(one, 'b'), same(one, 'c')]),
          'elsewhere,elsewhere,1,0',
        ),
      () => expectResults(decide(redis, [same(other), same(one, 'd'), same(two, 'e')]), 'elsewhere,0,1'),
      () => expectResults(decide(redis, [same(two, 'f')], 'cells'), '0'),
      async () => {
        await (await server()).call('SET', block, `${NOW + 5} for a reason`)
        return expectResults(
          decide(redis, [same(other), same({ ...one, identities: [`key=${here[2]}`] })]),
          'elsewhere,for a reason',
        )
      },
      async () => {
        await (await server()).call('SET', block, `${NOW} for a reason`)
        return expectResults(
          decide(redis, [same({ ...one, identities: [`key=${here[2]}`] }, 'g'), same(other)]),
          '2,elsewhere',
        )
      },
    )
  },
}))

const both = [algorithms.slidingLog?.(3, HOUR_MS), algorithms.gcra?.(3, HOUR_MS)] as Limit<string>[]
const withAll = [...both, (algorithms.concurrency as (typeof algorithms)[string])(3, HOUR_MS)]

/** The reply of the test whether a server reads these keys of several slots in one script, here after `before`. */
async function crossSlots(redis: MutatedRedis, keys: readonly string[], before = ''): Promise<number> {
  const { connection } = await halfClusterStarted()
  return Number(await connection.eval(`${before} ${redis.mutated(crossSlotsScript.sha1)}`, 0, ...keys))
}

const keyOf = (identity: string) => `sluice:v1:{key=${identity}}:ready`

/** Keys, and the reply where the commands of `-` are forbidden, or where `before` the script makes its server older. */
const CROSS_SLOTS: Readonly<
  Record<string, { keys: readonly string[]; reply: number; forbidden?: string; before?: string }>
> = {
  'no keys': { keys: [], reply: 1 },
  'keys of several slots that are here': { keys: here.map(keyOf), reply: 1 },
  'a last key that is elsewhere': { keys: [...here, away].map(keyOf), reply: 0 },
  'a first key that is elsewhere': { keys: [away, ...here].map(keyOf), reply: 0 },
  'no permission to read': { keys: here.map(keyOf), reply: -1, forbidden: 'get' },
  // Redis before 7.0 does not tell its version to scripts.
  'an older server': { keys: here.map(keyOf), reply: -1, before: 'local redis = { pcall = redis.pcall }' },
}

export const crossSlotsChecks: readonly Check[] = Object.entries(CROSS_SLOTS).map(
  ([name, { keys, reply, forbidden, before }]) => ({
    name: `cross-slots: ${name}`,
    run: async ({ redis }) => {
      const node = await server()
      await node.flush()
      if (forbidden) await node.call('ACL', 'SETUSER', 'default', `-${forbidden}`)
      try {
        const replied = await crossSlots(redis, keys, before)
        return replied === reply ? undefined : `${replied} instead of ${reply}`
      } finally {
        if (forbidden) await node.call('ACL', 'SETUSER', 'default', `+${forbidden}`)
      }
    },
  }),
)

export const elsewhereInPartChecks: readonly Check[] = [
  {
    name: 'elsewhere: a request with only some of its keys on the node charges nothing',
    run: async ({ redis }) => {
      await (await server()).flush()
      const plan = (await requestOf(withAll, here[0])).plan
      // The second cell belongs to another identity.
      const cells = plan.cells.map((cell, i) => ({ ...cell, identity: i === 1 ? 1 : 0 }))
      const apart = { ...plan, identities: 2, cells }
      const request = { ...(await requestOf(withAll, here[0])), plan: apart, permitId: 'a' }
      const on = (...whose: string[]) => ({ ...request, identities: whose.map((identity) => `key=${identity}`) })
      return first(
        () =>
          expectResults(
            decide(redis, [on(here[0], away), on(away, here[0]), on(here[0], here[1])]),
            'elsewhere,elsewhere,2',
          ),
        async () => {
          const keys = (await (await server()).call('KEYS', '*')) as string[]
          return keys.length === 3 ? undefined : `it has written ${keys.join()}`
        },
      )
    },
  },
  {
    name: 'elsewhere: a key without permission to read is an error, not elsewhere',
    run: async ({ redis }) => {
      const request = await requestOf(both.slice(1), here[0])
      await (await server()).call('ACL', 'SETUSER', 'default', '-get')
      try {
        return `decided: ${textOf(await decide(redis, [request]))}`
      } catch (error) {
        return /NOPERM|permission|can't run/i.test(String(error)) ? undefined : String(error)
      } finally {
        await (await server()).call('ACL', 'SETUSER', 'default', '+get')
      }
    },
  },
]
