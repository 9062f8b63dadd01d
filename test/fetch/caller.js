// A process that calls a service, on the built package as users get it. Receives runs over IPC, and returns statuses.
import { limitedFetch, redisStore } from '@sluice/fetch'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
// A long timeout: the test is about the requests of all processes on a busy machine, not about speed.
const store = redisStore(client, { timeout: 15_000 })

/** @param {{ url: string, requests: number, options: import('@sluice/fetch').LimitedFetchOptions }} run */
async function call({ url, requests, options }) {
  const api = limitedFetch(fetch, { name: 'partner', store, ...options })
  const responses = await Promise.allSettled(Array.from({ length: requests }, () => api(url)))
  process.send?.(responses.map((one) => (one.status === 'fulfilled' ? one.value.status : String(one.reason))))
}

process.on('message', call)
// The process ends with the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
