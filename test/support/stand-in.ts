import type { RedisClient } from '@sluice/core'

/** The replies of a stand-in to commands: values, or thrown errors. */
export type Answering = (name: string, args: readonly string[]) => unknown

/**
 * A client of ioredis for `redisStore`, whose replies a function makes. For replies that no real Redis sends, and to
 * see the commands of a store. Whether a Redis accepts these is not tested with it.
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
