// A program that uses a limiter, and at the end closes its client but not the store. It has to exit without help.
import { createLimiter, redisStore } from '@sluice/core'

const port = Number(process.env.REDIS_PORT)

const ends = {
  async ioredis() {
    const { Redis } = await import('ioredis')
    const client = new Redis({ host: '127.0.0.1', port })
    return { client, end: () => client.quit() }
  },
  async ioredis5() {
    const { Redis } = await import('ioredis5')
    const client = new Redis({ host: '127.0.0.1', port })
    return { client, end: () => client.disconnect() }
  },
  async redis() {
    const { createClient } = await import('redis')
    const client = await createClient({ socket: { host: '127.0.0.1', port } }).connect()
    return { client, end: () => client.close() }
  },
  async redis5() {
    const { createClient } = await import('redis5')
    const client = await createClient({ socket: { host: '127.0.0.1', port } }).connect()
    return { client, end: () => client.destroy() }
  },
}

const kind = /** @type {keyof typeof ends} */ (process.argv[2])
const { client, end } = await ends[kind]()
const limiter = createLimiter({
  name: 'lingerer',
  store: redisStore(client, { timeout: '1m' }),
  limit: 5,
  window: '1m',
})
const verdict = await limiter.consume(kind)
console.log(verdict.allowed, verdict.remaining)
await end()
