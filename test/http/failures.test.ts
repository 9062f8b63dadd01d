import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import request from 'supertest'
import { expect, test } from 'vitest'
import { run } from './support/app.js'
import { FRAMEWORKS } from './support/frameworks.js'

/** Values that `next` would take for no error, or for a way out of the route. */
const THROWN = [undefined, null, 0, false, '', 'route', 'router', 'text']

test.each(Object.keys(FRAMEWORKS))(
  'for any value that a user function throws, %s fails and the handler does not run',
  async (name) => {
    for (const thrown of THROWN) {
      const throws = () => {
        throw thrown
      }
      for (const cost of [throws, () => Promise.reject(thrown)]) {
        const routes = { '/': { limiters: [{ limit: 1, window: '1m' as const, cost }] } }
        const app = await run(FRAMEWORKS[name] as (typeof FRAMEWORKS)[string], { routes })
        try {
          const response = await fetch(app.url, { signal: AbortSignal.timeout(5000) })
          await response.text()
          expect([thrown, response.status, app.ran, app.errors.length]).toEqual([thrown, 500, [], 1])
        } finally {
          await app.close()
        }
      }
    }
  },
)

test('a Koa app without its own error handler responds with 500, too', async () => {
  const app = new Koa()
  app.silent = true
  app.use(rateLimit({ limit: 1, window: '1m', cost: () => Promise.reject() }))
  await request(app.callback()).get('/').timeout(5000).expect(500)
})
