import { connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, leakyBucket, rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const closing = closedAfterEach()

/** A client over HTTP/2: returns the stream and the status of each request. */
async function client(app: { listen(options: { port: number; host: string }): Promise<string>; close(): unknown }) {
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  closing.push(() => app.close())
  const session = connect(address)
  closing.push(() => session.destroy())
  return (method = 'GET') => {
    const stream = session.request({ ':path': '/', ':method': method })
    stream.on('error', () => {})
    const status = new Promise<unknown>((resolve) => stream.on('response', (headers) => resolve(headers[':status'])))
    stream.resume().end()
    return { stream, status }
  }
}

test('over HTTP/2 a client that leaves the queue is refunded and never reaches the handler', async () => {
  let ran = 0
  const app = fastify({ http2: true })
  await app.register(rateLimit, { limits: [leakyBucket({ leak: 1, every: '2s', capacity: 2, queue: true })] })
  app.get('/', async () => {
    ran++
    return 'done'
  })
  const get = await client(app)

  expect(await get().status).toBe(200)
  const leaving = get()
  await sleep(30)
  expect(await get().status).toBe(429)
  leaving.stream.close(8)
  await sleep(30)
  expect(await get().status).toBe(200)
  await sleep(100)
  expect(ran).toBe(2)
})

test('over HTTP/2 a HEAD request waits for its turn and holds a permit, like any other', async () => {
  const app = fastify({ http2: true })
  const limits = [leakyBucket({ leak: 1, every: '100ms', capacity: 2, queue: true }), concurrency({ limit: 2 })]
  await app.register(rateLimit, { limits })
  app.head('/', async () => {
    const { limits = [] } = (await app.rateLimit.limiter?.peek('127.0.0.1')) ?? {}
    return { free: limits[1]?.remaining === 1 }
  })
  const free: unknown[] = []
  app.addHook('onSend', async (_request, _reply, payload) => void free.push(payload))
  const get = await client(app)
  expect(await Promise.all([get('HEAD').status, get('HEAD').status])).toEqual([200, 200])
  expect(free).toContain('{"free":true}')
})

test('over HTTP/2 a HEAD request reset before its response releases its permit when its handler is done', async () => {
  const app = fastify({ http2: true })
  await app.register(rateLimit, { limits: [concurrency({ limit: 1, ttl: '1h' })] })
  const handlers: (() => void)[] = []
  app.head('/', () => new Promise<void>((resolve) => handlers.push(resolve)))
  const get = await client(app)
  const free = async () => (await app.rateLimit.limiter?.peek('127.0.0.1'))?.remaining
  const { stream } = get('HEAD')
  await expect.poll(() => handlers.length).toBe(1)
  expect(await free()).toBe(0)
  stream.close(8)
  await new Promise((resolve) => stream.once('close', resolve))
  expect(await free()).toBe(0)
  handlers[0]?.()
  await expect.poll(free).toBe(1)
})
