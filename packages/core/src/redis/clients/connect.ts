import { invalidPolicy } from '../../util/errors.js'
import type { Client, Connection, Wire, WireEvents } from './connection.js'
import { ioredis } from './ioredis.js'
import { nodeRedis, nodeRedisCluster } from './node-redis.js'
import { sharedConnection } from './shared.js'

/**
 * What `redisStore` takes: a client of `ioredis` (single, Sentinel or Cluster; 5.4 or later) or of `redis` (single or cluster; 5 or
 * later). Of its own types only that is asked for by which one can be recognised, so that neither package is a dependency.
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
 * A connection of our own beside the user's client, to the same servers: only so can commands be kept
 * from being resent or queued, whatever the client is set to do for its user. It ends with the client, or with the last store
 * that was made of it.
 */
export function connect(client: Client, timeoutMs: number, connectTimeoutMs: number): Connection {
  return sharedConnection(client, timeoutMs, connectTimeoutMs, (events) => wireOf(client, timeoutMs, events))
}

function wireOf(client: Client, timeoutMs: number, events: WireEvents): Wire {
  // A connection without a reply for so long is ended: it can be dead and stay open.
  const silenceMs = Math.max(1000, timeoutMs + 500)
  if (typeof client?.duplicate === 'function') {
    if (typeof client.evalsha === 'function' && typeof client.status === 'string')
      return ioredis(client, silenceMs, events)
    // What ends them is new in 5. Its client by Sentinel has a `sendCommand`, too, of other parameters.
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
  )
}
