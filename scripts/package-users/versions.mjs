// A user's program, run by `npm run deep -- versions` on every version that is declared: each framework refuses the third
// of three requests, and each Redis client decides. Prints what it ran on.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { createLimiter, redisStore } from '@sluice/core'
import * as forExpress from '@sluice/express'
import * as forFastify from '@sluice/fastify'
import * as forKoa from '@sluice/koa'
import * as forNest from '@sluice/nestjs'
import express from 'express'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { createClient } from 'redis'

const url = process.env.REDIS_URL
const limits = { limit: 2, window: '1h' }
const require = createRequire(import.meta.url)

/** @param {import('@nestjs/core').AbstractHttpAdapter} [adapter] without one, that for Express */
async function nest(adapter) {
  class Routes {
    get() {
      return 'done'
    }
  }
  Get()(Routes.prototype, 'get', Object.getOwnPropertyDescriptor(Routes.prototype, 'get'))
  Controller()(Routes)
  class App {}
  Module({
    imports: [forNest.SluiceModule.forRoot(limits)],
    controllers: [Routes],
    providers: [{ provide: APP_GUARD, useClass: forNest.SluiceGuard }],
  })(App)
  const app = await NestFactory.create(App, ...(adapter ? [adapter] : []), { logger: false })
  await app.init()
  if (adapter) await adapter.getInstance().ready()
  return app.getHttpServer()
}

const FRAMEWORKS = {
  express() {
    const app = express()
    app.use(forExpress.rateLimit(limits))
    app.get('/', (_req, res) => res.send('done'))
    return createServer(app)
  },
  koa() {
    const app = new Koa()
    app.use(forKoa.rateLimit(limits))
    app.use((ctx) => {
      ctx.body = 'done'
    })
    return createServer(app.callback())
  },
  async fastify() {
    const app = fastify()
    await app.register(forFastify.rateLimit, limits)
    app.get('/', async () => 'done')
    await app.ready()
    return app.server
  },
  '@nestjs/platform-express': () => nest(),
  '@nestjs/platform-fastify': () => nest(new FastifyAdapter()),
}

const CLIENTS = {
  async ioredis() {
    const client = new Redis(url)
    return { client, close: () => client.disconnect() }
  },
  async redis() {
    const client = createClient({ url })
    client.on('error', () => {})
    await client.connect()
    return { client, close: () => client.destroy() }
  },
}

for (const [name, make] of Object.entries(FRAMEWORKS)) {
  const server = await make()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const statuses = []
  for (let n = 0; n < 3; n++) {
    const response = await fetch(`http://127.0.0.1:${server.address().port}/`)
    await response.text()
    statuses.push(response.status)
  }
  server.closeAllConnections()
  server.close()
  assert.deepEqual(statuses, [200, 200, 429], name)
}

for (const [name, connect] of Object.entries(CLIENTS)) {
  const { client, close } = await connect()
  const store = redisStore(client, { timeout: '10s' })
  await store.ready?.()
  const limiter = createLimiter({ name: `versions-${randomUUID()}`, store, ...limits })
  const verdicts = []
  // One after the other, so that the deny cache and scripts that Redis already knows take part.
  for (let n = 0; n < 4; n++) verdicts.push(await limiter.consume('ann'))
  assert.deepEqual(
    verdicts.map(({ kind, allowed }) => [kind, allowed]),
    [
      ['decided', true],
      ['decided', true],
      ['decided', false],
      ['decided', false],
    ],
    name,
  )
  await store.close()
  close()
}

const versions = [...Object.keys(FRAMEWORKS), ...Object.keys(CLIENTS)].map((name) => {
  const file = require.resolve(name).replace(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+\/).*$/, '$1package.json')
  return `${name} ${require(file).version}`
})
console.log(`Node ${process.versions.node}: ${versions.join(', ')}`)
