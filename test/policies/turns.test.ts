import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { redisStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import express from 'express'
import { afterEach, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { client } = await redisForTests()

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
  await client.flushall()
})

/** A server on a store of its own, as another process has. Its handler runs until it is finished. */
async function serve() {
  const loaded = await policies.from({
    object: {
      version: 1,
      policies: {
        reports: {
          limits: [{ algorithm: 'concurrency', limit: 3, ttl: '1h' }],
          cost: { 'concurrent-requests': 2 },
          sharedTurns: { ttl: '1m' },
          respond: { queue: { maxWait: '1m' } },
        },
      },
    },
  })
  const store = redisStore(client, { timeout: 5000 })
  open.push(() => store.close())
  const middleware = rateLimit({ policies: loaded, store })
  const app = express()
  app.use(middleware)
  const finish: (() => void)[] = []
  app.use((_req, res) => void finish.push(() => res.send('ok')))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => new Promise((resolve) => server.close(resolve)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { send: () => fetch(url, { headers: { connection: 'close' } }), finish, limiter: middleware.limiter }
}

test('with sharedTurns in a document, a request waiting in one process comes before a new one in another', async () => {
  const [one, other] = [await serve(), await serve()]
  const peek = () => other.limiter.peek({ ip: '127.0.0.1' }, { tier: 'reports' })
  const first = one.send()
  await until('the first is handled', () => one.finish.length === 1)
  expect(await peek()).toMatchObject({ allowed: true, remaining: 1 })
  const second = one.send()
  await until('the second waits', async () => !(await peek()).allowed)
  expect(await peek()).toMatchObject({ reason: 'limited', remaining: 1 })
  one.finish[0]?.()
  expect((await first).status).toBe(200)
  await until('the second is handled', () => one.finish.length === 2)
  one.finish[1]?.()
  expect((await second).status).toBe(200)
  await until('none waits', async () => (await peek()).allowed)
})

test('sharedTurns beside policies is rejected, as the document sets it', async () => {
  const loaded = await policies.from({ object: { version: 1, policies: {} } })
  expect(() => rateLimit({ policies: loaded, sharedTurns: true })).toThrow(
    'sharedTurns: expected none beside policies, which define it themselves',
  )
})
