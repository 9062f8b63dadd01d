// @ts-check
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import { register } from 'prom-client'
import { help } from './help.js'
import { answer, BUSY_MS, download, limitsFor, loginAnswer, openAnswer, unitsOf } from './limits.js'

/**
 * @param {import('@sluice/core').Store} store
 * @param {import('@sluice/policies').Policies} policies
 * @param {number} port
 * @param {readonly number[]} ports
 */
export async function koaServer(store, policies, port, ports) {
  const { limited, several, costly, together, slow, queued, slowed, busy, reported, password, login } = limitsFor(
    'koa',
    store,
  )
  const app = new Koa()
  let logins = 0

  /**
   * A route, for which you would use a router in production: a limiter is a middleware like any other.
   *
   * @param {string} method
   * @param {string} path
   * @param {import('koa').Middleware[]} middleware
   */
  const route = (method, path, ...middleware) => {
    for (const each of middleware) {
      app.use((ctx, next) => (ctx.method === method && ctx.path === path ? each(ctx, next) : next()))
    }
  }
  /**
   * @param {string} path
   * @param {import('koa').Middleware[]} middleware
   */
  const get = (path, ...middleware) => route('GET', path, ...middleware)
  /** @type {import('koa').Middleware} */
  const show = (ctx) => {
    ctx.body = answer('koa', ctx.state.rateLimit)
  }

  get('/', (ctx) => {
    ctx.body = help('Koa', port, ports)
  })
  get('/open', (ctx) => {
    ctx.body = openAnswer('koa')
  })
  // For Prometheus. In production, use a port that only Prometheus reaches: the names of policies are not for clients.
  get('/metrics', async (ctx) => {
    ctx.type = register.contentType
    ctx.body = await register.metrics()
  })
  get('/limited', rateLimit(limited), show)
  get('/several', rateLimit(several), show)
  get('/costly', rateLimit({ ...costly, cost: (ctx) => unitsOf(ctx.query.units) }), show)
  get('/together', rateLimit(together), show)
  get('/slow', rateLimit(slow), show)
  get('/queue', rateLimit(queued), show)
  get('/download', rateLimit(slowed), (ctx) => {
    ctx.type = 'text/plain'
    ctx.body = download
  })
  get('/busy', rateLimit(busy), async (ctx) => {
    await sleep(BUSY_MS)
    ctx.body = answer('koa', ctx.state.rateLimit)
  })
  get('/reported', rateLimit(reported), show)
  const byPolicies = rateLimit({ name: 'koa', policies, store })
  app.use((ctx, next) => (ctx.path.startsWith('/policies/') ? byPolicies(ctx, async () => show(ctx, next)) : next()))
  route('POST', '/password', rateLimit(password), show)
  get('/login', (ctx) => {
    ctx.body = { logins }
  })
  route('POST', '/login', rateLimit(login), (ctx) => {
    logins++
    ctx.set('Cache-Control', 'no-store') // as a shadow, which no cache may store
    ctx.body = loginAnswer
  })
  return createServer(app.callback())
}
