// Runs alone: it reads the figures of all stores of its process.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { everyone, rateLimit as expressLimit, fixedWindow } from '@sluice/express'
import { rateLimit as fastifyLimit } from '@sluice/fastify'
import { rateLimit as koaLimit } from '@sluice/koa'
import { sluiceMetrics } from '@sluice/prometheus'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { Registry } from 'prom-client'
import { afterAll, describe, expect, test } from 'vitest'
import { receive } from '../http/support/receive.js'
import { seriesIn, sumOf } from './exposition.js'

const register = new Registry()
const metrics = sluiceMetrics({ register })
afterAll(() => metrics.stop())

/** Three policies: one that limits, one that only reports, and one that bans. */
const limits = (name: string) =>
  ({
    limited: { name: `${name}-limited`, limit: 3, window: '1h' },
    reported: { name: `${name}-reported`, limit: 3, window: '1h', enforce: { mode: 'report' } },
    banned: {
      name: `${name}-banned`,
      limit: 1,
      window: '1h',
      ban: { by: 'ip', after: 2, within: '1h', for: ['1h'], private: true },
    },
  }) as const

const SERVERS: Record<string, () => Promise<Server>> = {
  async express() {
    const { limited, reported, banned } = limits('express')
    const app = express()
    app.get('/metrics', async (_req, res) => void res.type(register.contentType).send(await register.metrics()))
    app.get('/limited', expressLimit(limited), (_req, res) => void res.send('ok'))
    app.get('/reported', expressLimit(reported), (_req, res) => void res.send('ok'))
    app.get('/banned', expressLimit(banned), (_req, res) => void res.send('ok'))
    return createServer(app)
  },
  async koa() {
    const { limited, reported, banned } = limits('koa')
    const app = new Koa()
    const at = (path: string, limit: Koa.Middleware) => {
      app.use((ctx, next) => (ctx.path === path ? limit(ctx, next) : next()))
    }
    at('/limited', koaLimit(limited))
    at('/reported', koaLimit(reported))
    at('/banned', koaLimit(banned))
    app.use(async (ctx) => {
      if (ctx.path === '/metrics') ctx.type = register.contentType
      ctx.body = ctx.path === '/metrics' ? await register.metrics() : 'ok'
    })
    return createServer(app.callback())
  },
  async fastify() {
    const { limited, reported, banned } = limits('fastify')
    const app = fastify()
    await app.register(fastifyLimit, { global: false })
    app.get('/metrics', async (_request, reply) => reply.type(register.contentType).send(await register.metrics()))
    app.get('/limited', { config: { rateLimit: limited } }, async () => 'ok')
    app.get('/reported', { config: { rateLimit: reported } }, async () => 'ok')
    app.get('/banned', { config: { rateLimit: banned } }, async () => 'ok')
    await app.ready()
    return app.server
  },
}

describe.each(Object.keys(SERVERS))('%s', (name) => {
  test('/metrics shows the decisions that clients received', async () => {
    const server = await (SERVERS[name] as () => Promise<Server>)()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const statuses = async (path: string) => {
      const seen: number[] = []
      for (let n = 0; n < 8; n++) {
        const response = await fetch(url + path)
        await response.arrayBuffer()
        seen.push(response.status)
      }
      return { admitted: seen.filter((status) => status === 200).length, refused: seen.filter((s) => s !== 200).length }
    }
    try {
      const received = {
        limited: await statuses('/limited'),
        reported: await statuses('/reported'),
        banned: await statuses('/banned'),
      }
      expect(received).toEqual({
        limited: { admitted: 3, refused: 5 },
        reported: { admitted: 8, refused: 0 },
        banned: { admitted: 1, refused: 7 },
      })
      const response = await fetch(`${url}/metrics`)
      expect(response.headers.get('content-type')).toContain('text/plain')
      const series = seriesIn(await response.text())
      const requests = (policy: string, labels: Record<string, string>) =>
        sumOf(series, 'sluice_requests_total', { policy: `${name}-${policy}`, ...labels })
      expect(requests('limited', { outcome: 'admitted' })).toBe(3)
      expect(requests('limited', { outcome: 'limited', reported: 'false' })).toBe(5)
      expect(requests('reported', { outcome: 'limited', reported: 'true' })).toBe(5)
      expect(requests('reported', { reported: 'false' })).toBe(0)
      // The second refusal is the strike that starts the ban.
      expect(requests('banned', {})).toBe(8)
      expect(requests('banned', { outcome: 'admitted' })).toBe(1)
      expect(requests('banned', { outcome: 'banned' })).toBe(6)
      expect(sumOf(series, 'sluice_bans_total', { policy: `${name}-banned` })).toBe(1)
      expect(sumOf(series, 'sluice_strikes_total', { policy: `${name}-banned` })).toBe(2)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

test('a response cut in the middle by a quota of bytes is counted with source "response"', async () => {
  const name = 'bytes-cut'
  const sent = fixedWindow({ name: 'sent', limit: 200_000, window: '1h', unit: 'response-bytes' })
  const app = express()
  app.use(expressLimit({ name, key: everyone(), limits: [sent] }))
  app.use((_req, res) => void res.send(Buffer.alloc(1_000_000)))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const got = await receive((server.address() as AddressInfo).port)
  server.close()
  expect(got.isWhole).toBe(false)
  const series = seriesIn(await register.metrics())
  const of = (labels: object) => sumOf(series, 'sluice_requests_total', { policy: name, ...labels })
  expect(of({ source: 'response', outcome: 'limited', limit: 'sent' })).toBe(1)
  expect(of({ source: 'store', outcome: 'admitted' })).toBe(1)
  expect(of({})).toBe(2)
})
