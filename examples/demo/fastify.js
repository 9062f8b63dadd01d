// @ts-check
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { help } from './help.js'
import { answer, failure, limitsFor, openAnswer } from './limits.js'

/**
 * @param {import('@sluice/core').Store} store
 * @param {number} port
 * @param {readonly number[]} ports
 */
export async function fastifyServer(store, port, ports) {
  const { limited, several, costly, together } = limitsFor('fastify', store)
  const app = fastify()
  await app.register(rateLimit, { global: false })

  app.setErrorHandler((error, _request, reply) => {
    const { status, body } = failure(error)
    reply.code(status).send(body)
  })

  /** @param {import('fastify').FastifyRequest} request */
  const show = async (request) => answer('fastify', request.rateLimit)
  /** @param {import('fastify').FastifyRequest} request */
  const units = (request) => Number(/** @type {{ units?: string }} */ (request.query).units ?? 1)

  app.get('/', async () => help('Fastify', port, ports))
  app.get('/open', async () => openAnswer('fastify'))
  app.get('/limited', { config: { rateLimit: limited } }, show)
  app.get('/several', { config: { rateLimit: several } }, show)
  app.get('/costly', { config: { rateLimit: { ...costly, cost: units } } }, show)
  app.get('/together', { onRequest: app.rateLimit(together) }, show)
  await app.ready()
  return app.server
}
