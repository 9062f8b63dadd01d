// Release: runs clusters. Takes long: begins first.
import { readdirSync, readFileSync } from 'node:fs'
import { createLimiter, gcra, type RedisClient, redisStore } from '@sluice/core'
import { CELL_KINDS, commandsNeeded } from '@sluice/core/internal'
import type { KernelName } from '@sluice/core/store'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { createClient, createCluster } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { namesOf, type Owned, ownedIoredis, ownedNodeRedis } from '../support/clients.js'
import { warningsDuring } from '../support/process-events.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.js'
import { HOST, type RedisServer, startRedis } from '../support/redis-server.js'
import { useEveryFeature } from '../support/store-features.js'
import { until } from '../support/until.js'

/** The `ACL SETUSER` lines of SECURITY.md by their trailing comment; the first has none. */
const LINES = new Map(
  [
    ...readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8').matchAll(
      /^ACL SETUSER sluice ([^#\n]*?) *(?:# (.*))?$/gm,
    ),
  ].map(([, rules = '', where = '']) => [where, rules.split(' ')]),
)
const rulesFor = (where: string): string[] => {
  const rules = LINES.get(where)
  if (!rules) throw new Error(`SECURITY.md has no line for "${where}"`)
  return rules
}
const BASE = rulesFor('')

const auth = { username: 'sluice', password: 'choose-a-password' }

async function grant(servers: readonly RedisServer[], ...rules: readonly string[]): Promise<void> {
  for (const server of servers) {
    await server.call('ACL', 'SETUSER', 'sluice', 'reset', ...rules)
    await server.call('ACL', 'LOG', 'RESET')
  }
}

/** All commands that the ACL denied since the user was created. */
async function refused(servers: readonly RedisServer[]): Promise<string[]> {
  const logs = await Promise.all(servers.map((server) => server.call('ACL', 'LOG') as Promise<string[][]>))
  return [...new Set(logs.flat().map((entry) => entry[entry.indexOf('object') + 1] as string))]
}

async function keysWithoutExpiry(server: RedisServer): Promise<string[]> {
  const keys = (await server.call('KEYS', '*')) as string[]
  const expiries = await Promise.all(keys.map((key) => server.call('PTTL', key)))
  return keys.filter((_, i) => expiries[i] === -1)
}

async function useAll(
  owned: Owned<RedisClient>,
  servers: readonly RedisServer[],
  keys: readonly string[],
): Promise<void> {
  const setAll = (value: number) =>
    Promise.all(servers.map((server) => server.call('CONFIG', 'SET', 'min-replicas-to-write', value)))
  try {
    await Promise.all(servers.map((server) => server.flush()))
    await owned.ready
    await useEveryFeature(owned.client, keys, {
      flushScripts: () => Promise.all(servers.map((server) => server.call('SCRIPT', 'FLUSH'))),
      outage: async (during) => {
        await setAll(9)
        await during()
        await setAll(0)
      },
    })
  } finally {
    owned.close()
  }
}

/** The commands that a file calls: in Lua, or as words of the probe. */
function commandsIn(file: string, pattern: RegExp): string[] {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  return [...text.matchAll(pattern)].map(([, name = '']) => `+${name.toLowerCase()}`)
}

test('the documented permissions and the outage probe cover exactly the commands of the scripts', () => {
  const decisions = readdirSync(new URL('../../lua/cells', import.meta.url))
    .map((file) => `lua/cells/${file}`)
    .concat('lua/decide.lua', 'lua/one.lua', 'lua/shared/now.lua', 'lua/strikes.lua')
    .flatMap((file) => commandsIn(file, /\b(?:call|tryCall)\('([A-Z]+)'/g))
  const blocks = ['block', 'index', 'index-clear', 'index-page', 'refusals', 'refusals-slice', 'figures'].flatMap(
    (name) => commandsIn(`lua/${name}.lua`, /\b(?:call|tryCall|pcall)\('([A-Z]+)'/g),
  )
  const documented = BASE.filter((rule) => rule.startsWith('+'))
  expect(documented.sort()).toEqual([...new Set(['+eval', '+evalsha', '+info', ...decisions, ...blocks])].sort())
  const kinds = new Set(Object.keys(CELL_KINDS) as KernelName[])
  const probed = [
    ...['health/probing.ts', 'scripts/commands-needed.ts'].flatMap((file) =>
      commandsIn(`packages/core/src/redis/${file}`, /\['([A-Z]+)'/g),
    ),
    ...commandsNeeded('key', kinds).map(([name = '']) => `+${name.toLowerCase()}`),
  ]
  expect([...new Set(probed)].sort()).toEqual([...new Set(decisions)].sort())
})

describe('a single server', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  const own = {
    'ioredis 6': (more = {}) => ownedIoredis(new Redis<'legacy'>({ host: HOST, port: server.port, ...auth, ...more })),
    'ioredis 5': (more = {}) => ownedIoredis(new Redis5({ host: HOST, port: server.port, ...auth, ...more })),
    'redis 6': ({ db, connectionName }: { db?: number; connectionName?: string } = {}) =>
      ownedNodeRedis(
        createClient({
          socket: { host: HOST, port: server.port },
          ...auth,
          ...(db === undefined ? {} : { database: db }),
          ...(connectionName === undefined ? {} : { name: connectionName }),
        }),
      ),
    'redis 5': ({ db, connectionName }: { db?: number; connectionName?: string } = {}) =>
      ownedNodeRedis(
        createClient5({
          socket: { host: HOST, port: server.port },
          ...auth,
          ...(db === undefined ? {} : { database: db }),
          ...(connectionName === undefined ? {} : { name: connectionName }),
        }),
      ),
  }

  test.each(namesOf(own))(
    'the documented permissions suffice for every feature on one server, over %s',
    async (kind) => {
      await grant([server], ...BASE)
      await useAll(own[kind](), [server], ['a'])
      expect(await refused([server])).toEqual([])
    },
  )

  test.each(namesOf(own))(
    'the documented permissions for another database and a connection name suffice, over %s',
    async (kind) => {
      await grant([server], ...BASE, ...rulesFor('a database other than 0'), ...rulesFor('a name of the connection'))
      await useAll(own[kind]({ db: 1, connectionName: 'limits' }), [server], ['a'])
      expect(await refused([server])).toEqual([])
    },
  )

  test.each(namesOf(own))('a missing permission for the block index causes one warning, over %s', async (kind) => {
    await server.flush()
    await grant([server], ...BASE, '-hmget')
    const owned = own[kind]()
    try {
      await owned.ready
      const warnings = await warningsDuring(async () => {
        const store = redisStore(owned.client, { timeout: 5000 })
        const limiter = createLimiter({ name: 'denied', store, limit: 5, window: '1m' })
        expect((await limiter.consume('a')).kind).toBe('decided')
        const denials = async () => {
          const log = (await server.call('ACL', 'LOG')) as unknown[][]
          return log.reduce((sum, entry) => sum + Number(entry[1]), 0)
        }
        // Each look reads sixteen shards, so a second look has been denied.
        await until('the store has read the index twice', async () => (await denials()) > 16)
        await store.close()
      })
      expect(warnings.map((warning) => (warning as NodeJS.ErrnoException).code)).toEqual(['SLUICE_BLOCKS_DENIED'])
    } finally {
      owned.close()
    }
  })

  test.each(BASE.filter((rule) => rule.startsWith('+') && rule !== '+info'))(
    'a store needs %s, and leaves no key without an expiry where it is denied',
    async (rule) => {
      await grant([server], ...BASE)
      await server.call('ACL', 'SETUSER', 'sluice', rule.replace('+', '-'))
      // For some commands no caller waits for the result.
      await useAll(own['redis 6'](), [server], ['a']).catch(() => {})
      // The ACL log also has the commands that were denied to scripts.
      expect(await refused([server])).toContain(rule.slice(1))
      await server.call('CONFIG', 'SET', 'min-replicas-to-write', 0)
      expect(await keysWithoutExpiry(server)).toEqual([])
    },
  )

  test.each(['+select', '+client|setname'])('a client with such an option needs %s', async (rule) => {
    await grant([server], ...BASE, '+select', '+client|setname')
    await server.call('ACL', 'SETUSER', 'sluice', rule.replace('+', '-'))
    const { client, ready, close } = own['ioredis 6']({ db: 1, connectionName: 'limits' })
    await ready
    await (client as Redis).get('sluice:')
    expect(await refused([server])).toContain(rule.slice(1))
    close()
  })

  test('store.forget() works with its documented permission, and rejects with the error of Redis without it', async () => {
    await grant([server], ...BASE)
    const { client, ready, close } = own['ioredis 6']()
    await ready
    const store = redisStore(client, { timeout: 2000 })
    await expect(store.forget({ key: 'k' })).rejects.toThrow(/NOPERM|can't run this command/)
    await grant([server], ...BASE, ...rulesFor('store.forget(), store.kept()'))
    await store.forget({ key: 'k' })
    await store.kept({ key: 'k' })
    expect(await refused([server])).toEqual([])
    await store.close()
    close()
  })

  test('Redis decides nothing for a user who may access the counts but not the marker of blocks', async () => {
    await grant([server], ...BASE.map((rule) => (rule.startsWith('~') ? '~sluice:{*' : rule)))
    const { client, ready, close } = own['ioredis 6']()
    await ready
    const store = redisStore(client, { timeout: 2000 })
    const limiter = createLimiter({ store, limits: [gcra({ limit: 5, window: '1m' })] })
    for (let n = 0; n < 5; n++) expect((await limiter.consume('k')).kind).toBe('unavailable')
    expect(store.state).toBe('unavailable')
    await store.close()
    close()
  })
})

describe('a cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster.stop())

  const nodes = () => cluster.masters.map(({ port }) => ({ host: HOST, port }))
  const rootNodes = () => cluster.masters.map(({ port }) => ({ url: `redis://${HOST}:${port}` }))
  const own = {
    'ioredis 6 Cluster': () => ownedIoredis(new Cluster<'legacy'>(nodes(), { redisOptions: auth })),
    'ioredis 5 Cluster': () => ownedIoredis(new Cluster5(nodes(), { redisOptions: auth })),
    'redis 6 cluster': () => ownedNodeRedis(createCluster({ rootNodes: rootNodes(), defaults: auth })),
    'redis 5 cluster': () => ownedNodeRedis(createCluster5({ rootNodes: rootNodes(), defaults: auth })),
  }
  const linesOf = (kind: string) => rulesFor(kind.replace(/ \d/, ''))

  test.each(namesOf(own))(
    'the documented permissions suffice for every feature on a cluster, over %s',
    async (kind) => {
      await grant(cluster.masters, ...BASE, ...linesOf(kind))
      const keys = cluster.masters.map((_, i) => cluster.identityOn(i))
      await useAll(own[kind](), cluster.masters, keys)
      expect((await refused(cluster.masters)).filter((command) => command !== 'client|setname')).toEqual([])
    },
  )

  test.each(namesOf(own).flatMap((kind) => linesOf(kind).map((rule) => [kind, rule] as const)))(
    'a store over %s needs %s',
    async (kind, rule) => {
      await grant(cluster.masters, ...BASE, ...linesOf(kind))
      for (const master of cluster.masters) await master.call('ACL', 'SETUSER', 'sluice', rule.replace('+', '-'))
      const { client, ready, close } = own[kind]()
      ready.catch(() => {})
      const store = redisStore(client, { timeout: 300 })
      const limiter = createLimiter({ store, limit: 5, window: '1m' })
      expect((await limiter.consume('k')).kind).toBe('unavailable')
      expect(await refused(cluster.masters)).toContain(rule.slice(1))
      await store.close()
      close()
    },
  )
})

describe('by Sentinel', () => {
  let all: RedisSentinels
  beforeAll(async () => {
    all = await startSentinels()
  })
  afterAll(() => all.stop())

  const options = () => ({
    name: all.name,
    sentinels: all.sentinels.map(({ port }) => ({ host: HOST, port })),
    ...auth,
  })
  const own = {
    'ioredis 6': () => ownedIoredis(new Redis<'legacy'>(options())),
    'ioredis 5': () => ownedIoredis(new Redis5(options())),
  }
  test.each(namesOf(own))('the documented permissions suffice for every feature by Sentinel, over %s', async (kind) => {
    await grant(all.servers, ...BASE)
    await useAll(own[kind](), all.servers.slice(0, 1), ['a'])
    expect(await refused(all.servers)).toEqual([])
  })
})
