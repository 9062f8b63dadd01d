// A container of a function, on the built package. It decides one request for each message, and may be frozen between.
import { createLimiter, redisStore } from '@sluice/core'

const port = Number(process.env.REDIS_PORT)
/** @type {Record<string, () => Promise<import('@sluice/core').RedisClient>>} */
const clients = {
  async 'ioredis 6'() {
    const { Redis } = await import('ioredis')
    return new Redis({ host: '127.0.0.1', port }).on('error', () => {})
  },
  async 'ioredis 5'() {
    const { Redis } = await import('ioredis5')
    return new Redis({ host: '127.0.0.1', port }).on('error', () => {})
  },
  async 'redis 6'() {
    const { createClient } = await import('redis')
    return createClient({ socket: { host: '127.0.0.1', port } }).on('error', () => {})
  },
  async 'redis 5'() {
    const { createClient } = await import('redis5')
    return createClient({ socket: { host: '127.0.0.1', port } }).on('error', () => {})
  },
}
const client = await /** @type {() => Promise<any>} */ (clients[process.env.CLIENT ?? ''])()
const store = redisStore(client, JSON.parse(process.env.OPTIONS ?? '{}'))
store.on('store', ({ state }) => process.send?.({ state }))
const limiter = createLimiter({ name: 'function', store, limit: 5, window: '10m' })

process.on('message', async (/** @type {{ key: string, times: number }} */ { key, times }) => {
  const began = performance.now()
  const decisions = Array.from({ length: times }, async () => {
    const { kind, allowed } = await limiter.consume(key)
    return { kind, allowed, tookMs: performance.now() - began }
  })
  process.send?.({ decisions: await Promise.all(decisions) })
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
process.send?.('ready')
