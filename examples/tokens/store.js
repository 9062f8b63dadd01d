// @ts-check
import { memoryStore, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'

const { REDIS_URL } = process.env
const redis = REDIS_URL ? new Redis(REDIS_URL) : undefined
redis?.on('error', () => {}) // the store warns of outages

/** Where budgets are counted: Redis if REDIS_URL is set, for all processes together. */
export const store = redis ? redisStore(redis) : memoryStore()
await store.ready?.()

/** Closes a server, then the store. @param {() => unknown} close */
export function closeOnSignal(close) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
      await close()
      await store.close?.()
      redis?.disconnect()
    })
  }
}
