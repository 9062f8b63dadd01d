import { createServer } from 'node:http'
import { rateLimit } from '@sluice/express'
import type { Express, NextFunction, Request, Response } from 'express'
import type { AppFactory, AppSpec } from './app.js'

/** Express 4 and 5 differ in their import, and in nothing else used here. */
export const expressApp =
  (express: () => Express): AppFactory =>
  async ({ global = [], routes = {}, presetHeaders = {}, trustProxy = false }: AppSpec): ReturnType<AppFactory> => {
    const ran: string[] = []
    const errors: unknown[] = []
    const verdicts: unknown[] = []
    const app = express()
    app.set('trust proxy', trustProxy && 'loopback')
    app.use((_req: Request, res: Response, next: NextFunction) => {
      for (const [name, value] of Object.entries(presetHeaders)) res.setHeader(name, value)
      next()
    })
    const globals = global.map((options) => rateLimit(options as never))
    for (const limiter of globals) app.use(limiter)
    const own = Object.entries(routes).flatMap(([path, { limiters = [], handler = () => 'done' }]) => {
      const handlers = limiters.map((options) => rateLimit(options as never))
      app.get(path, ...handlers, (req, res, next) => {
        ran.push(path)
        verdicts.push(req.rateLimit)
        Promise.resolve(handler()).then((text) => res.type('text').send(text), next)
      })
      return handlers
    })
    app.use((error: { code?: string }, _req: Request, res: Response, _next: NextFunction) => {
      errors.push(error)
      res.status(500).type('text').send(`error ${error.code}`)
    })
    const limiters = [...globals, ...own].map(({ limiter }) => limiter as never)
    return { server: createServer(app), ran, errors, verdicts, limiters }
  }
