import { pathOf } from '@sluice/core/internal'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { makeConsole } from '../console.js'
import type { ConsoleOptions } from '../options.js'

export type { Authorize, ConsoleOptions, NamedPolicies, Operator } from '../options.js'

/**
 * The console for Fastify 5, as a plugin. Its notes of refusals end with the app.
 *
 * @example await app.register(consoleFor({ store, limiters, authorize }), { prefix: '/sluice' })
 * @throws SluiceError `INVALID_POLICY`
 */
export function consoleFor(options: ConsoleOptions<FastifyRequest>): (app: FastifyInstance) => Promise<void> {
  const { serve, close } = makeConsole(options)
  return async function sluiceConsole(app) {
    // The console reads bodies itself, with bounds of its own.
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
    // Before open streams are waited for.
    app.addHook('preClose', async () => close())
    // Counted, as a prefix may end in a slash, and have parameters.
    const depth = app.prefix.split('/').filter((part) => part !== '').length
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      // The response is written as in other frameworks, whatever hooks have set.
      reply.hijack()
      const below = pathOf(request.url)
        .split('/')
        .slice(depth + 1)
      const path = `/${below.join('/')}`
      await serve({ request, raw: request.raw, response: reply.raw, path, ip: request.ip, parsed: undefined })
    }
    for (const url of ['/', '/*']) app.route({ method: METHODS, url, exposeHeadRoute: false, handler })
  }
}

const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
