import { type ManagedStore, type RedisClient, type RedisStoreOptions, redisStore } from '@sluice/core'
import type { Owned } from './clients.js'
import { insist } from './outages.js'

/** A store on its own client, and a function that closes both. */
export interface OpenStore {
  readonly store: ManagedStore
  readonly client: RedisClient
  close(): Promise<void>
}

/** A store on a connected client, with a timeout for a busy machine by default, whose outages fail the test. */
export async function openStore(owned: Owned<RedisClient>, options: RedisStoreOptions = {}): Promise<OpenStore> {
  await owned.ready
  const store = insist(redisStore(owned.client, { timeout: 5000, ...options }))
  return {
    store,
    client: owned.client,
    async close() {
      await store.close()
      owned.close()
    },
  }
}
