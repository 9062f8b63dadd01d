// The stores of all bridges: the limiters of others refuse the second request by them.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import { sluiceStore } from '@sluice/bridges/express-rate-limit'
import { sluiceStore as fastifyStore } from '@sluice/bridges/fastify-rate-limit'
import { sluiceStore as honoStore } from '@sluice/bridges/hono-rate-limiter'
import { sluiceStorage } from '@sluice/bridges/nestjs-throttler'
import { sluiceLimiter } from '@sluice/bridges/rate-limiter-flexible'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { Hono } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { main, responsesOf } from './support.mjs'

const WINDOW = { windowMs: 3_600_000, limit: 1 }

main(async () => {
  const app = express().use(rateLimit({ ...WINDOW, store: sluiceStore({ name: 'express' }) }))
  const responses = await responsesOf(createServer(app), '/', '/')
  assert.deepEqual(
    responses.map(({ status }) => status),
    [404, 429],
  )

  const server = fastify()
  await server.register(fastifyRateLimit, { max: 1, timeWindow: '1 hour', store: fastifyStore({ name: 'fastify' }) })
  server.get('/', async () => 'done')
  const statuses = [await server.inject('/'), await server.inject('/')].map(({ statusCode }) => statusCode)
  assert.deepEqual(statuses, [200, 429])

  const hono = new Hono().use(rateLimiter({ ...WINDOW, keyGenerator: () => 'ann', store: honoStore({ name: 'hono' }) }))
  assert.deepEqual([(await hono.request('/')).status, (await hono.request('/')).status], [404, 429])

  const storage = sluiceStorage({ name: 'nest' })
  await storage.increment('ann', 3_600_000, 1, 0, 'default')
  assert.equal((await storage.increment('ann', 3_600_000, 1, 0, 'default')).isBlocked, true)

  const limiter = sluiceLimiter({ keyPrefix: 'mail', points: 1, duration: 3600 })
  await limiter.consume('ann')
  await assert.rejects(limiter.consume('ann'), { consumedPoints: 2 })
})
