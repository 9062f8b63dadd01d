import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { sluiceStore } from '@sluice/bridges/hono-rate-limiter'
import { Hono } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { expect, test } from 'vitest'
import { freshName, listen, statuses } from './support.js'

type Options = Parameters<typeof rateLimiter>[0]

test('hono-rate-limiter on a server counts with the bridge, and a missing key is an error', async () => {
  const app = new Hono()
  const keyGenerator = (c: { req: { query(name: string): string | undefined } }) => c.req.query('key') ?? ''
  app.use(rateLimiter({ limit: 1, keyGenerator, store: sluiceStore({ name: freshName() }) } as Options))
  app.get('/', (c) => c.text('hi'))
  app.onError((error, c) => c.text(error.message, 500))
  const url = await listen(createAdaptorServer(app) as Server)
  expect(await statuses(`${url}?key=a`, 2)).toEqual([200, 429])
  // The peer counts all such clients as one.
  expect(await statuses(url, 1)).toEqual([500])
})

test('hono-rate-limiter with the bridge refuses a function as limit without `maxLimit`, and other numbers of a second caller, when it is made', async () => {
  const store = sluiceStore({ name: freshName() })
  expect(() => rateLimiter({ limit: () => 5, keyGenerator: () => 'ann', store } as Options)).toThrow(
    'maxLimit: expected',
  )
  const other = sluiceStore({ name: freshName() })
  rateLimiter({ limit: 5, keyGenerator: () => 'ann', store: other } as Options)
  expect(() => rateLimiter({ limit: 6, keyGenerator: () => 'ann', store: other } as Options)).toThrow('another caller')
})
