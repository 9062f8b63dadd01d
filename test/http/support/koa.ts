import { createServer } from 'node:http'
import { rateLimit } from '@sluice/koa'
import Koa, { type Middleware } from 'koa'
import type { AppFactory } from './app.js'

export const koaApp: AppFactory = async ({ global = [], routes = {}, presetHeaders = {}, trustProxy = false }) => {
  const ran: string[] = []
  const errors: unknown[] = []
  const verdicts: unknown[] = []
  const app = new Koa({ proxy: trustProxy, maxIpsCount: 1 })
  app.use(async (ctx, next) => {
    ctx.set(presetHeaders)
    try {
      await next()
    } catch (error) {
      errors.push(error)
      ctx.status = 500
      ctx.body = `error ${(error as { code?: string }).code}`
    }
  })
  const globals = global.map((options) => rateLimit(options as never))
  for (const limiter of globals) app.use(limiter)
  const own = Object.entries(routes).flatMap(([path, { limiters = [], handler = () => 'done' }]) => {
    const handlers = limiters.map((options) => rateLimit(options as never))
    for (const limiter of handlers) app.use(onlyAt(path, limiter))
    app.use(
      onlyAt(path, async (ctx) => {
        ran.push(path)
        verdicts.push(ctx.state.rateLimit)
        const body = await handler()
        ctx.type = 'text'
        ctx.body = body
      }),
    )
    return handlers
  })
  const limiters = [...globals, ...own].map(({ limiter }) => limiter as never)
  return { server: createServer(app.callback()), ran, errors, verdicts, limiters }
}

function onlyAt(path: string, middleware: Middleware): Middleware {
  return (ctx, next) => (ctx.path === path ? middleware(ctx, next) : next())
}
