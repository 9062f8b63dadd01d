import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import type { AppFactory } from './app.js'

export const fastifyApp: AppFactory = async ({ global = [], routes = {}, presetHeaders = {}, trustProxy = false }) => {
  const ran: string[] = []
  const errors: unknown[] = []
  const verdicts: unknown[] = []
  const limiters: never[] = []
  const app = fastify({ trustProxy: trustProxy && 'loopback' })
  app.setErrorHandler((error: Error & { code?: string }, _request, reply) => {
    // The adapter hides details from clients in the cause.
    errors.push(error.message === 'The rate limiter failed' ? error.cause : error)
    reply.code(500).type('text/plain; charset=utf-8').send(`error ${error.code}`)
  })
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(presetHeaders)
  })
  for (const options of global) await app.register(rateLimit, options as never)
  if (global.length === 0) await app.register(rateLimit, { global: false })
  if (app.rateLimit.limiter) limiters.push(app.rateLimit.limiter as never)
  for (const [path, { limiters: own = [], handler = () => 'done' }] of Object.entries(routes)) {
    const hooks = own.map((options) => app.rateLimit(options as never))
    limiters.push(...hooks.map(({ limiter }) => limiter as never))
    app.get(path, { onRequest: hooks }, async (request, reply) => {
      ran.push(path)
      verdicts.push(request.rateLimit)
      const text = await handler()
      reply.type('text/plain; charset=utf-8')
      return text
    })
  }
  await app.ready()
  return { server: app.server, ran, errors, verdicts, limiters }
}
