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

/** The policy `b`, whose first request takes 2 of 3 units. The next one waits for 2, and leaves 1. */
const ofB = (sharedTurns?: object) => ({
  match: { paths: ['/b'] },
  key: 'everyone',
  ...(sharedTurns && { sharedTurns }),
  limits: [{ limit: 3, window: '1h' }],
})
const EVERYONE = { everyone: 'everyone' }

/** A limiter by policies that a test changes, as another process has it. */
async function process(first: object) {
  let document: object = { version: 1, policies: first }
  const loaded = await policies.from({ load: () => document, allowShrink: true })
  const store = redisStore(client, { timeout: 5000 })
  const leaving = new AbortController()
  open.push(() => {
    leaving.abort()
    return store.close()
  })
  const { limiter } = rateLimit({ policies: loaded, store })
  return {
    limiter,
    /** Begins to wait for units of a policy. */
    wait: (tier: string, cost: number) => {
      limiter.acquire(EVERYONE, { tier, cost, maxWait: '12h', signal: leaving.signal }).catch(() => {})
    },
    change: (next: object) => {
      document = { version: 1, policies: next }
      return loaded.reload()
    },
  }
}

/** For how many ms from now other processes trust the report on policy `b`; 0 where there is none. */
async function reportedForMs(): Promise<number> {
  const [key] = await client.keys('*:b/*:waiting')
  return key === undefined ? 0 : client.pttl(key)
}

async function untilRenewed(): Promise<void> {
  let lastMs = Number.POSITIVE_INFINITY
  const isRenewed = async () => {
    const before = lastMs
    lastMs = await reportedForMs()
    return lastMs > before
  }
  await until('the report is renewed', isRenewed, { withinMs: 10_000 })
}

test('reports are renewed before they lapse, also beside those of a policy with a longer ttl', async () => {
  const a = {
    match: { paths: ['/a'] },
    key: 'everyone',
    sharedTurns: { ttl: '1m' },
    limits: [{ limit: 1, window: '1h' }],
  }
  const both = { a, b: ofB({ ttl: '3s' }) }
  const [one, other] = [await process(both), await process(both)]
  await one.limiter.consume(EVERYONE, { tier: 'a' })
  one.wait('a', 1)
  await one.limiter.consume(EVERYONE, { tier: 'b', cost: 2 })
  one.wait('b', 2)
  const isHeldUp = async () => !(await other.limiter.peek(EVERYONE, { tier: 'b' })).allowed
  await until('the report is there', isHeldUp)
  await untilRenewed()
  expect(await isHeldUp()).toBe(true)
})

test('requests that wait hold up other processes from when their document has sharedTurns, by its ttl', async () => {
  const [one, other] = [await process({ b: ofB() }), await process({ b: ofB({ ttl: '3s' }) })]
  await one.limiter.consume(EVERYONE, { tier: 'b', cost: 2 })
  one.wait('b', 2)
  const isHeldUp = async () => !(await other.limiter.peek(EVERYONE, { tier: 'b' })).allowed
  expect(await isHeldUp()).toBe(false)
  await one.change({ b: ofB({ ttl: '3s' }) })
  await until('the other process is held up', isHeldUp, { withinMs: 5000 })
  await untilRenewed()
  await one.change({ b: ofB({ ttl: '1m' }) })
  await until('the report is valid for longer', async () => (await reportedForMs()) > 30_000, { withinMs: 5000 })
  await one.change({ b: ofB() })
  await until('the other process is not held up', async () => !(await isHeldUp()), { withinMs: 5000 })
})
