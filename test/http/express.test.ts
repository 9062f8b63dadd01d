import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { byIp, byMethod, byPath, byRoute, compose, rateLimit } from '@sluice/express'
import express from 'express'
import request from 'supertest'
import { expect, test } from 'vitest'

test('byRoute is the pattern of a mounted route with its named mount, and byPath the requested path', async () => {
  const keys: unknown[] = []
  const key = compose(byMethod(), byRoute({ mount: '/api' }), byPath())
  const app = express()
  const router = express.Router()
  router.get(
    '/users/:id',
    rateLimit({
      limit: 9,
      window: '1m',
      key: (req, context) => {
        keys.push(key(req, context))
        return 'k'
      },
    }),
    (_req, res) => void res.send('ok'),
  )
  app.use('/api', router)
  await request(app).get('/api/users/7?page=2').expect(200)
  expect(keys).toEqual(['GET|/api/users/:id|/api/users/7'])
})

test('requests made by hand, and those of a server without Express, are limited by their address', async () => {
  const limit = rateLimit({ limit: 1, window: '1m', key: compose(byIp(), byMethod()) })
  const statusOf = (req: object) =>
    new Promise<number>((resolve, reject) => {
      const res = new ServerResponse(req as IncomingMessage)
      res.end = (() => resolve(res.statusCode)) as never
      limit(req as never, res as never, (error) => (error ? reject(error) : resolve(200)))
    })
  const made = { method: 'GET', url: '/', headers: {}, ip: '192.0.2.1', socket: {} }
  expect([await statusOf({ ...made }), await statusOf({ ...made })]).toEqual([200, 429])
  const socket = { remoteAddress: '192.0.2.2' }
  const ofExpress = () =>
    Object.assign(Object.create(express.request), { method: 'GET', url: '/', headers: {}, socket })
  expect([await statusOf(ofExpress()), await statusOf(ofExpress())]).toEqual([200, 429])

  const server = createServer((req, res) => limit(req as never, res as never, () => res.end('ok')))
  await request(server).get('/').expect(200)
  await request(server).get('/').expect(429)
})

test('a limiter on a router covers all its routes with one budget', async () => {
  const app = express()
  const router = express.Router()
  router.use(rateLimit({ limit: 2, window: '1m' }))
  router.get('/a', (_req, res) => void res.send('ok'))
  router.get('/b', (_req, res) => void res.send('ok'))
  app.use('/api', router)
  app.get('/free', (_req, res) => void res.send('ok'))
  await request(app).get('/api/a').expect(200)
  await request(app).get('/api/b').expect(200)
  await request(app).get('/api/a').expect(429)
  await request(app).get('/free').expect(200)
})

test('byRoute without a known route is an error, not one bucket for all', async () => {
  const errors: unknown[] = []
  const app = express()
  app.use(rateLimit({ name: 'api', limit: 2, window: '1m', key: byRoute() }))
  app.use(((error, _req, res, _next) => {
    errors.push(error)
    res.sendStatus(500)
  }) as express.ErrorRequestHandler)
  await request(app).get('/').expect(500)
  expect(errors).toMatchObject([{ code: 'INVALID_KEY', message: expect.stringMatching(/^policy "api": /) }])
})

test('a limiter behind a response that was sent passes its error to the error handler', async () => {
  const errors: unknown[] = []
  const app = express()
  app.use((_req, res, next) => {
    res.send('timed out')
    next()
  })
  app.use(rateLimit({ limit: 2, window: '1m', cost: async () => 1 }))
  app.use(((error, _req, _res, _next) => {
    errors.push(error)
  }) as express.ErrorRequestHandler)
  await request(app).get('/').expect(200, 'timed out')
  await expect.poll(() => errors).toMatchObject([{ code: 'ERR_HTTP_HEADERS_SENT' }])
})
