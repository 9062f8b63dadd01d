// Apps of one framework in a separate process, on the built packages: one without a limiter, and one for each setup. Reports
// the CPU time of the process.
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import makeExpress from 'express'
import makeFastify from 'fastify'
import Koa from 'koa'
import { readsOf, SETUPS } from './setups.js'

/** @typedef {import('node:http').Server | import('node:http2').Http2Server} Server */

/** Each trusts the proxies of this machine, so that `X-Forwarded-For` is read. @type {Record<string, (options: any) => Promise<Server>>} */
const FRAMEWORKS = {
  'Express over HTTP/1': async (options) => {
    const app = makeExpress()
    app.set('env', 'test')
    app.set('trust proxy', 'loopback')
    if (options) app.use(expressAdapter.rateLimit(options))
    app.use((_req, res) => void res.send('done'))
    return createServer(app)
  },
  'Koa over HTTP/1': async (options) => createServer(koaApp(options)),
  'Koa over HTTP/2': async (options) => createHttp2Server(koaApp(options)),
  'Fastify over HTTP/1': async (options) => fastifyServer(options, false),
  'Fastify over HTTP/2': async (options) => fastifyServer(options, true),
}

/** @param {any} options */
function koaApp(options) {
  const app = new Koa({ proxy: true, maxIpsCount: 1 })
  app.silent = true
  if (options) app.use(koaAdapter.rateLimit(options))
  app.use((ctx) => {
    ctx.body = 'done'
  })
  return app.callback()
}

/** @param {any} options @param {boolean} http2 */
async function fastifyServer(options, http2) {
  const app = /** @type {import('fastify').FastifyInstance} */ (
    /** @type {unknown} */ (
      makeFastify(/** @type {any} */ ({ http2, trustProxy: 'loopback', forceCloseConnections: true }))
    )
  )
  if (options) await app.register(fastifyAdapter.rateLimit, options)
  app.all('/*', async () => 'done')
  await app.ready()
  return /** @type {Server} */ (app.server)
}

const framework = process.argv[2] ?? ''
const factory = FRAMEWORKS[framework]
if (!factory) throw new Error(`expected a framework, got ${framework}`)
/** @param {Server} server @returns {Promise<number>} */
const portOf = (server) =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port))
  })

const bare = await portOf(await factory(undefined))
const setups = []
for (const [name, options] of Object.entries(SETUPS)) {
  setups.push({ name, reads: readsOf(name), port: await portOf(await factory(await options())) })
}
process.on('message', () => process.send?.(process.cpuUsage()))
// The process ends with the test.
process.once('disconnect', () => process.exit())
process.send?.({ bare, setups })
