import { invalidPolicy } from '../errors.js'
import type { Client, Connection } from './connection.js'
import { ioredis } from './ioredis.js'
import { nodeRedis, nodeRedisCluster } from './node-redis.js'

/**
 * A connection of our own beside the user's client, to the same servers: only so can commands be kept
 * from being resent or queued, whatever the client is set to do for its user. It ends with the client.
 */
export function connect(client: Client, timeoutMs: number): Connection {
  // A peer that says nothing for so long, though asked, is given up: a connection can be dead and stay open.
  const silenceMs = Math.max(1000, timeoutMs + 500)
  if (typeof client?.duplicate === 'function') {
    if (typeof client.evalsha === 'function' && typeof client.status === 'string') return ioredis(client, silenceMs)
    if (typeof client.sendCommand === 'function' && typeof client.connect === 'function')
      return 'slots' in client ? nodeRedisCluster(client, silenceMs) : nodeRedis(client, silenceMs)
  }
  return invalidPolicy(
    'redisStore',
    'client',
    'a client or cluster of ioredis (5.4 or later) or redis (5 or later)',
    client,
  )
}
