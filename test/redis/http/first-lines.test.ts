import * as express from '@sluice/express'
import makeExpress from 'express'
import { Redis } from 'ioredis'
import request from 'supertest'
import { expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'

declare global {
  namespace Express {
    /** The user, as the sign-in of an application adds it. */
    interface Request {
      user?: { id: string }
    }
  }
}

test('the first examples of the documentation run and type-check as written', async () => {
  const { byUser, everyone, gcra, perDay, perHour, perMinute, perSecond, rateLimit, redisStore } = express
  const server = await startRedis()
  const redis = new Redis(server.url)
  try {
    const app = makeExpress()
    app.use((req, _res, next) => {
      req.user = { id: 'ann' }
      next()
    })

    app.use(rateLimit({ limit: 100, window: '1m' }))

    const store = redisStore(redis)
    app.use(
      rateLimit({
        name: 'api',
        store,
        limits: [perSecond(1), perMinute(20), perHour(200), perDay(800)],
      }),
    )
    app.get(
      '/export',
      rateLimit({
        name: 'export',
        store,
        cost: (req) => Number(req.query.pages ?? 1),
        limits: [
          gcra({ limit: 50, window: '1h', burst: 10, key: byUser((req) => req.user?.id) }),
          gcra({ limit: 5000, window: '1h', key: everyone() }),
        ],
      }),
      (req, res) => void res.json({ remaining: req.rateLimit?.remaining }),
    )

    const response = await request(app).get('/export?pages=3')
    expect([response.status, response.body]).toEqual([200, { remaining: 7 }])
    expect(response.headers['ratelimit-policy']).toBe(
      '"default";q=100;w=60, "api-1s";q=1;w=1, "api-1m";q=20;w=60, "api-1h";q=200;w=3600, "api-1d";q=800;w=86400, ' +
        '"export-1h";q=50;w=3600, "export-1h-2";q=5000;w=3600',
    )
    expect((await request(app).get('/export')).status).toBe(429)
    await store.close()
  } finally {
    redis.disconnect()
    await server.stop()
  }
})
