// One process of a service with a console, on the built packages as users get them.
import { createServer } from 'node:http'
import { consoleFor } from '@sluice/console/express'
import { rateLimit, redisStore } from '@sluice/express'
import { policies } from '@sluice/policies'
import express from 'express'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
const store = redisStore(client, { timeout: 15_000 })
await store.ready()
const limit = rateLimit({ name: 'api', store, limit: 2, window: '1h', warnings: { SLUICE_ONE_CLIENT: false } })

const document = await policies.from({ redis: client, save: new Redis(process.env.REDIS_URL ?? '') })

const app = express().set('trust proxy', 1)
app.use(
  '/sluice',
  consoleFor({
    store,
    limiters: [limit],
    policies: document,
    traffic: true,
    authorize: (request) => request.headers.authorization === 'ann' && { name: 'ann', may: 'act' },
  }),
)
app.use(
  '/documents',
  rateLimit({ store, policies: document, warnings: { SLUICE_ONE_CLIENT: false } }),
  (_request, response) => void response.send('ok'),
)
app.use(limit)
app.use((_request, response) => void response.send('ok'))

const server = createServer(app).listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' ? address?.port : undefined)
})
// Never outlive the test.
process.once('disconnect', () => process.exit())
