// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { register } from 'prom-client'
import { help } from './help.js'
import { answer, BUSY_MS, download, limitsFor, loginAnswer, openAnswer, unitsOf } from './limits.js'

/**
 * @param {import('@sluice/core').Store} store
 * @param {import('@sluice/policies').Policies} policies
 * @param {number} port
 * @param {readonly number[]} ports
 */
export async function fastifyServer(store, policies, port, ports) {
  const { limited, several, costly, together, slow, queued, slowed, busy, reported, password, login } = limitsFor(
    'fastify',
    store,
  )
  const app = fastify()
  let logins = 0
  await app.register(rateLimit, { global: false })

  /** @param {import('fastify').FastifyRequest} request */
  const show = async (request) => answer('fastify', request.rateLimit)
  /** @param {import('fastify').FastifyRequest} request */
  const units = (request) => unitsOf(/** @type {{ units?: string }} */ (request.query).units)

  app.get('/', async () => help('Fastify', port, ports))
  app.get('/open', async () => openAnswer('fastify'))
  // For Prometheus. In production, use a port that only Prometheus reaches: the names of policies are not for clients.
  app.get('/metrics', async (_request, reply) => reply.type(register.contentType).send(await register.metrics()))
  app.get('/limited', { config: { rateLimit: limited } }, show)
  app.get('/several', { config: { rateLimit: several } }, show)
  app.get('/costly', { config: { rateLimit: { ...costly, cost: units } } }, show)
  app.get('/together', { onRequest: app.rateLimit(together) }, show)
  app.get('/slow', { config: { rateLimit: slow } }, show)
  app.get('/queue', { config: { rateLimit: queued } }, show)
  app.get('/download', { config: { rateLimit: slowed } }, async (_request, reply) => {
    return reply.type('text/plain').send(download)
  })
  app.get('/busy', { config: { rateLimit: busy } }, async (request) => {
    await sleep(BUSY_MS)
    return answer('fastify', request.rateLimit)
  })
  app.get('/reported', { config: { rateLimit: reported } }, show)
  app.get('/policies/*', { onRequest: app.rateLimit({ name: 'fastify', policies, store }) }, show)
  app.post('/password', { config: { rateLimit: password } }, show)
  app.get('/login', async () => ({ logins }))
  app.post('/login', { config: { rateLimit: login } }, async (_request, reply) => {
    logins++
    reply.header('Cache-Control', 'no-store') // as a shadow, which no cache may store
    return loginAnswer
  })
  await app.ready()
  return app.server
}
