import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { createClient, createCluster } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5'
import type { RedisCluster } from './redis-cluster.js'
import type { RedisSentinels } from './redis-sentinel.js'
import { HOST } from './redis-server.js'

/** A user's client, connected, and how its user closes it. */
export interface Connected<Client = UserClient> {
  readonly client: Client
  close(): Promise<void>
}

/** Clients as their users make them, by the names people know them by. */
export const singleClients = {
  'ioredis 6': (port: number) => ioredis(new Redis({ host: HOST, port })),
  'ioredis 5': (port: number) => ioredis(new Redis5({ host: HOST, port })),
  'redis 6': (port: number) => nodeRedis(createClient({ socket: { host: HOST, port } })),
  'redis 5': (port: number) => nodeRedis(createClient5({ socket: { host: HOST, port } })),
}

export const clusterClients = {
  'ioredis 6 Cluster': (cluster: RedisCluster) => ioredis(new Cluster(nodesOf(cluster))),
  'ioredis 5 Cluster': (cluster: RedisCluster) => ioredis(new Cluster5(nodesOf(cluster))),
  'redis 6 cluster': (cluster: RedisCluster) => nodeRedis(createCluster({ rootNodes: urlsOf(cluster) })),
  'redis 5 cluster': (cluster: RedisCluster) => nodeRedis(createCluster5({ rootNodes: urlsOf(cluster) })),
}

export const sentinelClients = {
  'ioredis 6 by Sentinel': (all: RedisSentinels) => ioredis(new Redis({ name: all.name, sentinels: nodesOf(all) })),
  'ioredis 5 by Sentinel': (all: RedisSentinels) => ioredis(new Redis5({ name: all.name, sentinels: nodesOf(all) })),
}

type ClientOf<Kinds extends Record<string, (at: never) => Promise<Connected<unknown>>>> = Awaited<
  ReturnType<Kinds[keyof Kinds]>
>['client']

/** Whatever `redisStore` has to take, by its real type. */
export type UserClient =
  | ClientOf<typeof singleClients>
  | ClientOf<typeof clusterClients>
  | ClientOf<typeof sentinelClients>

/** The names of a table of clients, for `describe.each`. */
export function namesOf<Kinds extends object>(kinds: Kinds): (keyof Kinds & string)[] {
  return Object.keys(kinds) as (keyof Kinds & string)[]
}

async function ioredis<Client extends Redis | Redis5 | Cluster | Cluster5>(client: Client): Promise<Connected<Client>> {
  quiet(client)
  if (client.status !== 'ready') await new Promise((ready) => (client as Redis).once('ready', () => ready(undefined)))
  return { client, close: async () => client.disconnect() }
}

interface NodeRedisLike {
  on(event: 'error', listener: (error: unknown) => void): unknown
  connect(): Promise<unknown>
  destroy(): void
}

async function nodeRedis<Client extends NodeRedisLike>(client: Client): Promise<Connected<Client>> {
  quiet(client)
  await client.connect()
  return { client, close: async () => client.destroy() }
}

/** As every user of these clients has to: connections that break emit errors, which would end the process. */
function quiet(client: { on(event: 'error', listener: (error: unknown) => void): unknown }): void {
  client.on('error', () => {})
}

function nodesOf(servers: RedisCluster | RedisSentinels): { host: string; port: number }[] {
  const listed = 'sentinels' in servers ? servers.sentinels : servers.masters
  return listed.map(({ port }) => ({ host: HOST, port }))
}

function urlsOf({ masters }: RedisCluster): { url: string }[] {
  return masters.map(({ url }) => ({ url }))
}
