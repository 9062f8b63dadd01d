import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { createClient, createCluster } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5'
import { byEffort } from './effort.js'
import type { RedisSentinels } from './redis-sentinel.js'
import { HOST } from './redis-server.js'

/** A client, and the way its user closes it. */
export interface Owned<Client> {
  readonly client: Client
  /** Resolves when it is connected for the first time. */
  readonly ready: Promise<unknown>
  /** Closes it as its user would. */
  close(): void
}

// `new Redis<'legacy'>`, here and elsewhere: where TypeScript has to infer that, it compares all commands of all clients,
// which takes as long as to check all the rest of the project.

/** Clients as their users make them, by common names. */
export const singleClients = {
  'ioredis 6': (port: number) => ownedIoredis(new Redis<'legacy'>({ host: HOST, port })),
  'ioredis 5': (port: number) => ownedIoredis(new Redis5({ host: HOST, port })),
  'redis 6': (port: number) => ownedNodeRedis(createClient({ socket: { host: HOST, port } })),
  'redis 5': (port: number) => ownedNodeRedis(createClient5({ socket: { host: HOST, port } })),
}

/** The ports of the masters of a cluster. */
interface Reached {
  readonly masters: readonly { readonly port: number }[]
}

export const clusterClients = {
  'ioredis 6 Cluster': (cluster: Reached) => ownedIoredis(new Cluster<'legacy'>(nodesOf(cluster))),
  'ioredis 5 Cluster': (cluster: Reached) => ownedIoredis(new Cluster5(nodesOf(cluster))),
  'redis 6 cluster': (cluster: Reached) => ownedNodeRedis(createCluster({ rootNodes: urlsOf(cluster) })),
  'redis 5 cluster': (cluster: Reached) => ownedNodeRedis(createCluster5({ rootNodes: urlsOf(cluster) })),
}

export const sentinelClients = {
  'ioredis 6 by Sentinel': (all: RedisSentinels) =>
    ownedIoredis(new Redis<'legacy'>({ name: all.name, sentinels: nodesOf(all) })),
  'ioredis 5 by Sentinel': (all: RedisSentinels) =>
    ownedIoredis(new Redis5({ name: all.name, sentinels: nodesOf(all) })),
}

/** The same, as Sluice advises. */
export const listeningClients = {
  'ioredis 6 that listens to Sentinel': (all: RedisSentinels) =>
    ownedIoredis(new Redis<'legacy'>({ name: all.name, sentinels: nodesOf(all), failoverDetector: true })),
  'ioredis 5 that listens to Sentinel': (all: RedisSentinels) =>
    ownedIoredis(new Redis5({ name: all.name, sentinels: nodesOf(all), failoverDetector: true })),
}

/** The names of a table of clients, for `describe.each`. */
export function namesOf<Kinds extends object>(kinds: Kinds): (keyof Kinds & string)[] {
  return Object.keys(kinds) as (keyof Kinds & string)[]
}

/**
 * One major of each library, for tests that take long; `npm run deep` uses all of them. Every run uses all of them in
 * `redis/clients`, `redis/connections` and `redis/acl`.
 */
export function oneOfEach<Kinds extends object>(kinds: Kinds): (keyof Kinds & string)[] {
  const all = namesOf(kinds)
  // The newer ioredis, and the older redis.
  return byEffort({ usual: all.filter((_, place) => place === 0 || place === 3), full: all })
}

/** One client, for tests that take longest; `npm run deep` uses all of them. */
export function oneOf<Kinds extends object>(kinds: Kinds, name: keyof Kinds & string): (keyof Kinds & string)[] {
  return byEffort({ usual: [name], full: namesOf(kinds) })
}

/** The few members used here: comparing the whole types takes TypeScript many seconds. */
interface IoredisLike {
  on(event: 'error', listener: (error: unknown) => void): unknown
  once(event: 'ready', listener: () => void): unknown
  disconnect(): void
}

export function ownedIoredis<Client extends IoredisLike>(client: Client): Owned<Client> {
  quiet(client)
  const ready = new Promise((resolve) => client.once('ready', () => resolve(undefined)))
  return { client, ready, close: () => client.disconnect() }
}

interface NodeRedisLike {
  on(event: 'error', listener: (error: unknown) => void): unknown
  connect(): Promise<unknown>
  destroy(): void
}

export function ownedNodeRedis<Client extends NodeRedisLike>(client: Client): Owned<Client> {
  quiet(client)
  const ready = client.connect()
  // Closed before it was ever connected.
  ready.catch(() => {})
  return { client, ready, close: () => client.destroy() }
}

/** As every user of these clients has to: broken connections emit errors, which would end the process. */
function quiet(client: { on(event: 'error', listener: (error: unknown) => void): unknown }): void {
  client.on('error', () => {})
}

function nodesOf(servers: Reached | RedisSentinels): { host: string; port: number }[] {
  const listed = 'sentinels' in servers ? servers.sentinels : servers.masters
  return listed.map(({ port }) => ({ host: HOST, port }))
}

function urlsOf({ masters }: Reached): { url: string }[] {
  return masters.map(({ port }) => ({ url: `redis://${HOST}:${port}` }))
}
