import type { RedisClient } from '@sluice/core'

/** How a stand-in answers a command: with what it returns, or an error. */
export type Answering = (name: string, args: readonly string[]) => unknown

/**
 * What `redisStore` takes for a client of ioredis, answering as it is told to. For what no Redis says, and
 * for looking at what would be sent to one; whether a Redis accepts that is not tested with it.
 */
export function standIn(answer: Answering): RedisClient {
  const client = {
    status: 'ready',
    options: {},
    duplicate: () => client,
    evalsha: () => {},
    callBuffer: async (name: string, args: readonly string[]) => answer(name, args),
    on: () => client,
    once: () => client,
    off: () => client,
    disconnect: () => {},
  }
  return client
}
