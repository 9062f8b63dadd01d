// Release: runs clusters.
import { createLimiter, type RedisClient, redisStore } from '@sluice/core'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Owned, ownedIoredis, ownedNodeRedis } from '../support/clients.js'
import { startCluster } from '../support/redis-cluster.js'
import { startSentinels } from '../support/redis-sentinel.js'
import { HOST, type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

/** Servers, and a client with credentials that the application replaces. */
interface Rotating {
  readonly servers: readonly RedisServer[]
  readonly open: (credentials: Credentials) => Owned<RedisClient>
  /** Has the client use others from its next connection on, as applications do. */
  readonly replace: (client: RedisClient, credentials: Credentials) => void
  readonly stop: () => Promise<unknown>
}

interface Credentials {
  username: string
  password: string
}

const assignOptions = (client: RedisClient, credentials: Credentials) => {
  Object.assign((client as unknown as Redis).options, credentials)
}

const assignNodeOptions = (client: RedisClient, credentials: Credentials) => {
  Object.assign((client as unknown as Cluster).options.redisOptions ?? {}, credentials)
}

async function single(make: (port: number, credentials: Credentials) => Owned<RedisClient>): Promise<Rotating> {
  const server = await startRedis()
  return {
    servers: [server],
    open: (credentials) => make(server.port, credentials),
    replace: assignOptions,
    stop: () => server.stop(),
  }
}

async function sentinel(Client: typeof Redis | typeof Redis5): Promise<Rotating> {
  const all = await startSentinels()
  const sentinels = all.sentinels.map(({ port }) => ({ host: HOST, port }))
  return {
    servers: all.servers,
    open: (credentials) => ownedIoredis(new (Client as typeof Redis5)({ name: all.name, sentinels, ...credentials })),
    replace: assignOptions,
    stop: () => all.stop(),
  }
}

async function clustered(Client: typeof Cluster | typeof Cluster5): Promise<Rotating> {
  const cluster = await startCluster()
  const nodes = cluster.masters.map(({ port }) => ({ host: HOST, port }))
  return {
    servers: cluster.masters,
    open: (credentials) => ownedIoredis(new (Client as typeof Cluster5)(nodes, { redisOptions: { ...credentials } })),
    replace: assignNodeOptions,
    stop: () => cluster.stop(),
  }
}

const kinds: Record<string, () => Promise<Rotating>> = {
  'ioredis 6': () =>
    single((port, credentials) => ownedIoredis(new Redis<'legacy'>({ host: HOST, port, ...credentials }))),
  'ioredis 5': () => single((port, credentials) => ownedIoredis(new Redis5({ host: HOST, port, ...credentials }))),
  'ioredis 6 by Sentinel': () => sentinel(Redis),
  'ioredis 5 by Sentinel': () => sentinel(Redis5),
  'ioredis 6 Cluster': () => clustered(Cluster),
  'ioredis 5 Cluster': () => clustered(Cluster5),
  'redis 6 with a provider': async () => {
    let current: Credentials
    const provider = { type: 'async-credentials-provider' as const, credentials: async () => current }
    return {
      ...(await single((port, credentials) => {
        current = credentials
        return ownedNodeRedis(createClient({ socket: { host: HOST, port }, credentialsProvider: provider }))
      })),
      replace: (_client, credentials) => {
        current = credentials
      },
    }
  },
}

const OLD = { username: 'first', password: 'old-secret' }
const NEW = { username: 'second', password: 'new-secret' }

describe.each(Object.entries(kinds))('%s', (_kind, start) => {
  let rotating: Rotating
  let closes: (() => Promise<unknown> | undefined)[]
  beforeEach(async () => {
    closes = []
    rotating = await start()
    for (const server of rotating.servers) await grant(server, OLD)
  })
  afterEach(async () => {
    for (const close of closes) await close()
    await rotating.stop()
  })

  /** A limiter that admits by Redis alone. */
  async function opened() {
    const owned = rotating.open(OLD)
    await owned.ready
    const store = redisStore(owned.client, { timeout: 5000 })
    closes.push(
      () => store.close(),
      async () => owned.close(),
    )
    const limiter = createLimiter({ name: 'rotated', store, limit: 10, window: '1h', unavailable: { decide: 'deny' } })
    await limiter.consume('k')
    return { client: owned.client, limiter }
  }

  test('a store connects by the user and password that its client has by then', async () => {
    const { limiter, client } = await opened()
    rotating.replace(client, NEW)
    await rotate(rotating.servers)
    await until('Redis decides again', async () => (await limiter.peek('k')).allowed)
    expect(await limiter.consume('k')).toMatchObject({ remaining: 8 })
  })

  test('a store recovers when its client gets the new password after the old one failed', async () => {
    const { limiter, client } = await opened()
    await rotate(rotating.servers)
    await until('the old password fails', async () => !(await limiter.peek('k')).allowed)
    rotating.replace(client, NEW)
    await until('Redis decides again', async () => (await limiter.peek('k')).allowed)
    expect(await limiter.consume('k')).toMatchObject({ remaining: 8 })
    const second = redisStore(client)
    closes.push(() => second.close())
    expect(await second.ready()).toMatchObject({ state: 'available' })
  })
})

async function grant(server: RedisServer, { username, password }: Credentials): Promise<void> {
  await server.call('ACL', 'SETUSER', username, 'on', `>${password}`, '~*', '&*', '+@all')
}

/** Adds the new user, and removes the old one, which ends its connections. */
async function rotate(servers: readonly RedisServer[]): Promise<void> {
  for (const server of servers) await grant(server, NEW)
  for (const server of servers) await server.call('ACL', 'DELUSER', OLD.username)
}
