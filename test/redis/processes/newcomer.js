// A process of a service, on the built package, that decides from its start, before it has any connection.
import { createLimiter, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
client.on('error', () => {})
const store = redisStore(client, { timeout: '2s' })
const limiter = createLimiter({ name: 'cold', store, limit: 5, window: '10m' })

const verdicts = await Promise.all(Array.from({ length: 1000 }, () => limiter.consume('everybody')))
process.send?.({
  admitted: verdicts.filter(({ allowed }) => allowed).length,
  alone: verdicts.filter(({ kind }) => kind === 'unavailable').length,
})
await store.close()
client.disconnect()
process.disconnect?.()
