import { memoryStore, redisStore, type Store } from '@sluice/core'
import type { Cluster, Redis } from 'ioredis'
import type { Output } from '../program/environment.js'
import { Unreachable } from '../redis/redis-failure.js'
import { clientFor, isCluster } from '../redis/store.js'
import { addressOf, type Target } from '../redis/target.js'

/** The place of a decider's counts. */
export interface State {
  readonly store: Store
  /** Its description for people. */
  readonly name: string
  /** Also used for documents in Redis. */
  readonly client: Redis | Cluster | undefined
  readonly isAvailable: () => boolean
  close(): Promise<void>
}

/** In the memory of this process alone. */
export function memoryState(offenders: boolean): State {
  return {
    store: memoryStore({ offenders }),
    name: 'the memory of this process',
    client: undefined,
    isAvailable: () => true,
    close: async () => {},
  }
}

/** In Redis, which may be away now and later: decisions are then made by this process alone. */
export async function redisState(
  target: Target,
  prefix: string,
  knownCluster: boolean,
  offenders: boolean,
  stderr: Output,
): Promise<State> {
  const client = clientFor(target, knownCluster || (await isClusterOr(target, stderr)), true)
  // The store's error explains it.
  client.on('error', () => {})
  const store = redisStore(client, { prefix, offenders })
  await store.ready()
  return {
    store,
    name: `Redis at ${addressOf(target)}`,
    client,
    isAvailable: () => store.state === 'available',
    async close() {
      await store.close()
      client.disconnect()
    },
  }
}

async function isClusterOr(target: Target, stderr: Output): Promise<boolean> {
  try {
    return await isCluster(target)
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error
    stderr.write(`sluice: ${error.message}; it is taken for one server (--cluster says that it is a cluster)\n`)
    return false
  }
}
