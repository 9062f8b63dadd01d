// One process of a service behind one limit, on the built packages as users get them. Requests state their priority, and wait for
// their turn across all processes. Sends its port and its number of waiters; the handler records each served request in Redis.
import { concurrency, everyone, queue, rateLimit, redisStore } from '@sluice/express'
import express from 'express'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
const store = redisStore(client, { timeout: 15_000 })
let waiting = 0

const app = express()
const limiter = rateLimit({
  name: 'waiting',
  store,
  sharedTurns: { ttl: /** @type {'1s'} */ (process.env.TURN_TTL ?? '500ms') },
  limits: [concurrency({ limit: 1, ttl: '1h', key: everyone() })],
  respond: queue({
    maxWait: '5m',
    size: 1000,
    ageEvery: '1h',
    priority: (/** @type {express.Request} */ req) => {
      process.send?.({ waiting: ++waiting })
      return Number(req.get('x-priority'))
    },
  }),
})
app.get('/', limiter, async (req, res) => {
  await client.rpush('served', req.get('x-priority') ?? '')
  res.end('done')
})
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
