import { invalidPolicy } from '../../util/errors.js'
import type { Client, Connection, Wire, WireEvents } from './connection.js'
import { ioredis } from './ioredis.js'
import { nodeRedis, nodeRedisCluster } from './node-redis.js'
import { sharedConnection } from './shared.js'

/**
 * A client for `redisStore`: one of `ioredis` (single, Sentinel or Cluster; 5.4 or later), of `iovalkey`, or of `redis`
 * (single or cluster; 5 or later). The type requires only the members that identify a client, so that no package is a
 * dependency.
 */
export type RedisClient =
  | (Duplicable & { readonly status: string; evalsha: Method })
  | (Duplicable & { sendCommand: Method; destroy: Method } & (
        | { readonly options: unknown }
        | { readonly slots: unknown }
      ))

interface Duplicable {
  duplicate: Method
}

type Method = (...args: never[]) => unknown

/**
 * Opens a separate connection beside the user's client, to the same servers. Commands on it are never resent or queued,
 * whatever the settings of the user's client. It ends with the client, or with the last store on that client.
 */
export function connect(client: Client, timeoutMs: number, connectTimeoutMs: number): Connection {
  return sharedConnection(client, timeoutMs, connectTimeoutMs, (events) => wireOf(client, timeoutMs, events))
}

function wireOf(client: Client, timeoutMs: number, events: WireEvents): Wire {
  // A connection without a reply for this long is ended, as a dead connection can stay open.
  const silenceMs = Math.max(1000, timeoutMs + 500)
  if (typeof client?.duplicate === 'function') {
    if (typeof client.evalsha === 'function' && typeof client.status === 'string')
      return ioredis(client, silenceMs, events)
    // `destroy` is new in version 5. The library's Sentinel client has a `sendCommand`, too, with different parameters.
    if (typeof client.sendCommand === 'function' && typeof client.destroy === 'function') {
      if ('slots' in client) return nodeRedisCluster(client, silenceMs, events)
      if ('options' in client) return nodeRedis(client, silenceMs, events)
    }
  }
  return invalidPolicy(
    'redisStore',
    'client',
    'a client of ioredis (single, Sentinel or Cluster; 5.4 or later) or of redis (single or cluster; 5 or later)',
    client,
    remedyFor(client),
  )
}

/** Other clients, by a method that those above lack, and the client to use instead. */
const OTHER_CLIENTS: readonly [method: string, remedy: string][] = [
  [
    'getSentinelNode',
    'instead of createSentinel, use new Redis({ sentinels, name, failoverDetector: true }) of ioredis',
  ],
  ['execute', 'instead of createClientPool, use createClient: a store has one connection of its own'],
  ['customCommand', 'instead of GLIDE, use a client of iovalkey, ioredis or redis for the same server'],
  [
    'createScript',
    'instead of Upstash over HTTP, use a client of ioredis or redis for the rediss:// address of the database',
  ],
]

function remedyFor(client: Client): string | undefined {
  if (typeof client === 'string') return 'make one, such as new Redis(url) of ioredis'
  return OTHER_CLIENTS.find(([method]) => typeof client?.[method] === 'function')?.[1]
}
