import { once } from 'node:events'
import { connect } from 'node:net'
import { everyone, type RateLimitHook, rateLimit } from '@sluice/fastify'
import fastify, { type FastifyServerOptions } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A limit for everything, and the statuses of two requests with exactly the given target. */
async function start(options: FastifyServerOptions = {}) {
  const app = fastify(options)
  await app.register(rateLimit, { limit: 1, window: '1h', key: everyone() })
  app.get('/item/:id', async () => 'item')
  app.post('/item', async () => 'item')
  await app.listen({ port: 0, host: '127.0.0.1' })
  closing.push(() => app.close())
  const { port } = app.server.address() as { port: number }
  const ask = async (target: string, method: string, headers: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.end(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await once(socket, 'close')
    return Number(text.split(' ')[1])
  }
  const twice = async (target: string, method = 'GET', headers = '') => [
    await ask(target, method, headers),
    await ask(target, method, headers),
  ]
  return { app, twice }
}

const LONG = `/item/${'x'.repeat(101)}`

test('in frameworkErrors the address of a client is that of its connection, whatever trustProxy is', async () => {
  const seen: string[] = []
  const { twice } = await start({
    trustProxy: 'loopback',
    frameworkErrors: (error, { ip }, reply) => {
      seen.push(ip)
      reply.send(error as never)
    },
  })
  await twice('/%zz', 'GET', 'X-Forwarded-For: 203.0.113.9\r\n')
  expect(seen).toEqual(['127.0.0.1', '127.0.0.1'])
})

describe('responses that Fastify makes itself', () => {
  test.each([
    ['no such path', '/none', 'GET', '', 404],
    ['no such method', '/item', 'DELETE', '', 404],
    ['a type that no parser takes', '/item', 'POST', 'Content-Type: a/b\r\nContent-Length: 0\r\n', 415],
    ['bad JSON', '/item', 'POST', 'Content-Type: application/json\r\nContent-Length: 0\r\n', 400],
    ['too large a body', '/item', 'POST', 'Content-Type: text/plain\r\nContent-Length: 9999999\r\n', 413],
  ])('a request without a handler is limited: %s', async (_what, target, method, headers, status) => {
    const { twice } = await start()
    expect(await twice(target, method, headers)).toEqual([status, 429])
  })

  test.each([
    ['a malformed URL', '/%zz', 400],
    ['a parameter that is too long', LONG, 414],
  ])('a request for which no hook runs is not limited: %s', async (_what, target, status) => {
    const { twice, app } = await start()
    expect(await twice(target)).toEqual([status, status])
    expect((await app.rateLimit.limiter?.peek('everyone'))?.remaining).toBe(1)
  })

  test.each([
    ['a malformed URL', '/%zz', 400],
    ['a parameter that is too long', LONG, 414],
  ])(
    'a hook called in frameworkErrors limits requests for which no other hook runs: %s',
    async (_what, target, status) => {
      let limited: RateLimitHook | undefined
      const { twice, app } = await start({
        frameworkErrors: (error, request, reply) => {
          limited?.(request, reply, (failure) => void reply.send((failure ?? error) as never))
        },
      })
      limited = app.rateLimit({ name: 'bad-urls', limit: 1, window: '1h', key: everyone() })
      expect(await twice(target)).toEqual([status, 429])
    },
  )
})
