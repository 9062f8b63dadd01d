// One process of a service behind one shared limit, on the built packages as users get them: a plain
// Node server, and the limiter that the path names. Sends its port, then each request that the handler receives.
import { createServer } from 'node:http'
import { everyone, leakyBucket, perSecond, queue, rateLimit, redisStore } from '@sluice/express'
import express from 'express'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
const store = redisStore(client, { timeout: 15_000 })

const limiters = {
  leaky: () =>
    rateLimit({
      name: 'leaky',
      store,
      key: everyone(),
      limits: [leakyBucket({ leak: 10, every: '1s', capacity: 20, queue: true })],
    }),
  queue: () =>
    rateLimit({ name: 'queue', store, key: everyone(), limits: [perSecond(4)], respond: queue({ maxWait: '30s' }) }),
}

const app = express()
for (const [name, make] of Object.entries(limiters)) {
  app.get(`/${name}`, make(), (_req, res) => {
    // By the clock of the machine, the same for all processes.
    process.send?.({ name, departedMs: performance.timeOrigin + performance.now() })
    res.end('done')
  })
}
const server = createServer(app)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
