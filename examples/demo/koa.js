// @ts-check
import { createServer } from 'node:http'
import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import { help } from './help.js'
import { answer, failure, limitsFor, openAnswer } from './limits.js'

/**
 * @param {import('@sluice/core').Store} store
 * @param {number} port
 * @param {readonly number[]} ports
 */
export async function koaServer(store, port, ports) {
  const { limited, several, costly, together } = limitsFor('koa', store)
  const app = new Koa()

  app.use(async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      Object.assign(ctx, failure(error))
    }
  })

  /**
   * A route, where a router would be used in earnest: a limiter is a middleware like any other.
   *
   * @param {string} path
   * @param {import('koa').Middleware[]} middleware
   */
  const get = (path, ...middleware) => {
    for (const each of middleware) {
      app.use((ctx, next) => (ctx.method === 'GET' && ctx.path === path ? each(ctx, next) : next()))
    }
  }
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
  get('/limited', rateLimit(limited), show)
  get('/several', rateLimit(several), show)
  get('/costly', rateLimit({ ...costly, cost: (ctx) => Number(ctx.query.units ?? 1) }), show)
  get('/together', rateLimit(together), show)
  return createServer(app.callback())
}
