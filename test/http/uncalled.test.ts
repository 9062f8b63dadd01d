import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import expressApp from 'express'
import express4App from 'express4'
import fastifyApp from 'fastify'
import Koa from 'koa'
import request from 'supertest'
import { expect, test } from 'vitest'

const SAYS = /^write rateLimit\(\{ limit: 100, window: "1m" \}\): expected options, got a request/

test.each([
  ['Express 5', expressApp],
  ['Express 4', express4App as unknown as typeof expressApp],
])('%s with an uncalled limiter fails the first request with an error that says so', async (_, make) => {
  const app = make()
  const messages: string[] = []
  // @ts-expect-error it is no middleware
  app.use(express.rateLimit)
  app.use(((error, _req, res, _next) => {
    messages.push(error.message)
    res.sendStatus(500)
  }) as expressApp.ErrorRequestHandler)
  expect((await request(app).get('/')).status).toBe(500)
  expect(messages).toEqual([expect.stringMatching(SAYS)])
})

test('Koa with an uncalled limiter fails the first request with an error that says so', async () => {
  const app = new Koa()
  const messages: string[] = []
  app.on('error', (error: Error) => messages.push(error.message))
  // @ts-expect-error it is no middleware
  app.use(koa.rateLimit)
  expect((await request(app.callback()).get('/')).status).toBe(500)
  expect(messages).toEqual([expect.stringMatching(SAYS)])
})

test('Fastify with an uncalled plugin or limiter has an error that shows the call', async () => {
  const app = fastifyApp()
  await app.register(fastify.rateLimit, { global: false })
  // @ts-expect-error it makes a hook
  app.get('/route', { onRequest: app.rateLimit }, async () => 'ok')
  // @ts-expect-error it is a plugin
  app.get('/plugin', { onRequest: fastify.rateLimit }, async () => 'ok')
  const messageOf = async (url: string) => (await app.inject(url)).json().message
  expect(await messageOf('/route')).toMatch(/^write app\.rateLimit\(\{ limit: 100, window: "1m" \}\): expected options/)
  expect(await messageOf('/plugin')).toBe(
    'rateLimit is a plugin: write app.register(rateLimit, { limit: 100, window: "1m" })',
  )
  await app.close()

  const called = fastifyApp()
  // @ts-expect-error it takes an app first
  called.register(fastify.rateLimit({ limit: 1, window: '1m' }))
  await expect(called.ready()).rejects.toThrow('rateLimit is a plugin: write app.register(rateLimit, {')
})
