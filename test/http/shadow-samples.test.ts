import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type Server } from 'node:http'
import * as https from 'node:https'
import type { AddressInfo } from 'node:net'
import { everyone, rateLimit, shadow } from '@sluice/express'
import express, { type RequestHandler } from 'express'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { CERTIFICATE, PRIVATE_KEY } from './support/certificate.js'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close()
})

// Samples have an age, and nothing else here has.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  return () => void vi.useRealTimers()
})

const learning = (limit: number) =>
  rateLimit({ limit, window: '1h', key: everyone(), respond: shadow({ learn: true }) })

async function start(...handlers: RequestHandler[]) {
  const app = express()
  app.use(...handlers)
  return serve(createServer(app))
}

async function serve(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  return (server.address() as AddressInfo).port
}

async function ask(port: number, path: string, options: https.RequestOptions = {}) {
  const by = options.agent === false ? https.get : get
  const [response] = (await once(by({ port, path, host: '127.0.0.1', ...options }), 'response')) as [IncomingMessage]
  const chunks: Buffer[] = await response.toArray()
  return { status: response.statusCode, text: Buffer.concat(chunks).toString() }
}

test('a page that one user was given with a session is not shown to a client that is blocked', async () => {
  const limiter = rateLimit({ limit: 10, window: '1h', respond: shadow({ learn: true }) })
  const port = await start(limiter, (req, res) => {
    if (req.headers.cookie === 'session=ann') res.send('account of ann')
    else res.status(401).send('log in')
  })
  expect((await ask(port, '/account', { headers: { cookie: 'session=ann' } })).text).toBe('account of ann')
  await limiter.limiter.block('127.0.0.1', { for: '1h' })
  expect(await ask(port, '/account')).toEqual({ status: 404, text: 'Not Found' })
})

test('an answer that is not for everybody takes the sample before it away', async () => {
  const answers = [200, 401]
  const port = await start(learning(2), (_req, res) => void res.status(answers.shift() as number).send('page'))
  await ask(port, '/')
  vi.advanceTimersByTime(10_001)
  await ask(port, '/')
  expect((await ask(port, '/')).status).toBe(404)
})

test('an answer without the page, such as 304, leaves the sample as it is', async () => {
  const answers = [200, 304]
  const port = await start(learning(2), (_req, res) => void res.status(answers.shift() as number).send('page'))
  await ask(port, '/')
  vi.advanceTimersByTime(10_001)
  await ask(port, '/')
  expect(await ask(port, '/')).toEqual({ status: 200, text: 'page' })
})

test('samples take 8 MiB at most, and those that were asked for last stay', async () => {
  const count = 150
  const port = await start(learning(count), (_req, res) => void res.send('x'.repeat(64 * 1024 - 100)))
  for (let n = 0; n < count; n++) await ask(port, `/${n}`)
  const statuses: unknown[] = []
  for (const n of [0, 20, count - 120, count - 1]) statuses.push((await ask(port, `/${n}`)).status)
  expect(statuses).toEqual([404, 404, 200, 200])
})

test('a session that starts further out, with the head of the answer, makes that personal', async () => {
  const session: RequestHandler = (_req, res, next) => {
    const writeHead = res.writeHead as (...args: unknown[]) => typeof res
    res.writeHead = (...args: unknown[]) => {
      res.setHeader('Set-Cookie', 'session=new')
      return writeHead.apply(res, args)
    }
    next()
  }
  const port = await start(session, learning(1), (_req, res) => void res.send('token of this session'))
  await ask(port, '/')
  expect((await ask(port, '/')).status).toBe(404)
})

test.each([
  ['with', { cert: CERTIFICATE, key: PRIVATE_KEY }, 404],
  ['without', {}, 200],
])('after a client %s a certificate of its own, the next gets what that allows', async (_how, own, status) => {
  const app = express()
  app.use(learning(1), (_req, res) => void res.send('page'))
  const tls = { cert: CERTIFICATE, key: PRIVATE_KEY, requestCert: true, rejectUnauthorized: false }
  const port = await serve(https.createServer(tls, app))
  const client = { rejectUnauthorized: false, agent: false } as const
  expect((await ask(port, '/', { ...client, ...own })).status).toBe(200)
  expect((await ask(port, '/', client)).status).toBe(status)
})

test('clients that never read their responses keep no other response from being learned for longer than 10 s', async () => {
  const big = Buffer.alloc(16 * 1024 * 1024)
  const port = await start(learning(18), (req, res) => void res.send(req.path === '/' ? 'page' : big))
  for (let n = 0; n < 16; n++) {
    const stuck = get({ port, path: `/${n}`, host: '127.0.0.1', agent: false })
    const [response] = (await once(stuck, 'response')) as [IncomingMessage]
    response.pause()
    closing.push(() => stuck.destroy())
  }
  await ask(port, '/')
  vi.advanceTimersByTime(10_001)
  await ask(port, '/')
  expect(await ask(port, '/')).toEqual({ status: 200, text: 'page' })
})
