import { once } from 'node:events'
import { type ClientHttp2Stream, connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type BodyOptions, everyone, gcra, memoryStore } from '@sluice/core'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeFastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

const closing = closedAfterEach()

const options = (more: { body?: BodyOptions } = {}) => ({
  store: memoryStore({ clock: () => 0 }),
  key: everyone(),
  limits: [gcra({ limit: 1000, window: '1h', unit: 'content-bytes' as const })],
  body: { max: 400 },
  ...more,
})

const APPS = {
  Koa: async (more?: { body?: BodyOptions }) => {
    const app = new Koa()
    app.on('error', () => {})
    const middleware = koa.rateLimit(options(more))
    app.use(middleware)
    app.use(async (ctx) => {
      let length = 0
      for await (const chunk of ctx.req) length += chunk.length
      ctx.body = String(length)
    })
    const server = createServer(app.callback() as never).listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(() => server.close())
    return { port: (server.address() as AddressInfo).port, limiter: middleware.limiter }
  },
  Fastify: async (more?: { body?: BodyOptions }) => {
    const app = makeFastify({ http2: true })
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    await app.register(fastify.rateLimit as never, options(more) as never)
    app.post('/', async (request) => String(String(request.body ?? '').length))
    await app.listen({ port: 0, host: '127.0.0.1' })
    closing.push(() => app.close())
    return { port: (app.server.address() as AddressInfo).port, limiter: app.rateLimit.limiter }
  },
}

describe.each(Object.entries(APPS))('%s over HTTP/2', (_name, make) => {
  async function post(port: number, headers: Record<string, string> = {}) {
    const session = connect(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    closing.push(() => session.destroy())
    const stream = session.request({ ':method': 'POST', ':path': '/', 'content-type': 'text/plain', ...headers })
    stream.on('error', () => {})
    const response = once(stream, 'response').then(async ([headers]) => ({
      status: headers[':status'] as number,
      type: headers['content-type'] as string,
      text: await textOf(stream),
    }))
    response.catch(() => {})
    return { stream, response }
  }

  test('over HTTP/2 a body is reserved, and settled for its received bytes', async () => {
    const { port, limiter } = await make()
    const left = async () => (await limiter?.peek('everyone'))?.remaining
    const { stream, response } = await post(port)
    stream.write('x'.repeat(30))
    await expect.poll(left).toBe(600)
    stream.end('x'.repeat(20))
    expect(await response).toMatchObject({ status: 200, text: '50' })
    await expect.poll(left).toBe(950)

    const cut = await post(port)
    cut.stream.write('x'.repeat(30))
    await expect.poll(left).toBe(550)
    cut.stream.close(8)
    await expect.poll(left).toBe(920)
  })

  test('over HTTP/2 with requireLength, a body without an announced length gets 411 and reserves nothing', async () => {
    const { port, limiter } = await make({ body: { max: 400, requireLength: true } })
    const growing = await post(port)
    growing.stream.write('x')
    const { status, type, text } = await growing.response
    expect([status, type, JSON.parse(text).title]).toEqual([
      411,
      'application/problem+json; charset=utf-8',
      'Length Required',
    ])
    const announced = await post(port, { 'content-length': '5' })
    announced.stream.end('12345')
    expect(await announced.response).toMatchObject({ status: 200, text: '5' })
    expect((await limiter?.peek('everyone'))?.remaining).toBe(995)
  })

  test('over HTTP/2 a body that is too large gets 413, announced or on its way', async () => {
    const { port } = await make()
    const announced = await post(port, { 'content-length': '401' })
    expect(await announced.response).toMatchObject({ status: 413, type: 'application/problem+json; charset=utf-8' })
    const growing = await post(port)
    growing.stream.write('x'.repeat(300))
    growing.stream.write('x'.repeat(300))
    expect(await growing.response).toMatchObject({ status: 413, type: 'application/problem+json; charset=utf-8' })
  })
})

async function textOf(stream: ClientHttp2Stream): Promise<string> {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk
  return text
}
