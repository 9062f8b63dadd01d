// @ts-check
// Three servers behind a real nginx, each of which trusts only nginx: 3 requests per 10 s and client address.
//
//   node app.js &                                        # as yourself, in this folder
//   nginx -p "$(mktemp -d)" -c "$PWD/nginx.conf" &
//   curl -i http://127.0.0.1:8080/express/               # or /koa/, /fastify/; the fourth is refused
//   curl -i -H 'X-Forwarded-For: 203.0.113.9' http://127.0.0.1:8080/express/    # so is this: the claim is ignored
//
// The apps listen on loopback only: a client that reaches them past nginx could claim any address.
import * as forExpress from '@sluice/express'
import * as forFastify from '@sluice/fastify'
import * as forKoa from '@sluice/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'

const host = '127.0.0.1'
const port = Number(process.env.PORT ?? 3000)
const limits = /** @type {const} */ ({ limit: 3, window: '10s' })

// Express: connections from loopback are nginx, whose fields are trusted.
const onExpress = express()
onExpress.set('trust proxy', 'loopback')
onExpress.use(forExpress.rateLimit(limits))
onExpress.get('/', (req, res) => {
  res.json({ server: 'express', ip: req.ip })
})

// Koa trusts a number of proxies instead of addresses: it takes the last address of X-Forwarded-For, which nginx wrote.
const onKoa = new Koa({ proxy: true, maxIpsCount: 1 })
onKoa.use(forKoa.rateLimit(limits))
onKoa.use((ctx) => {
  ctx.body = { server: 'koa', ip: ctx.ip }
})

// Fastify: like Express.
const onFastify = fastify({ trustProxy: 'loopback' })
await onFastify.register(forFastify.rateLimit, limits)
onFastify.get('/', async (request) => ({ server: 'fastify', ip: request.ip }))

const servers = [onExpress.listen(port, host), onKoa.listen(port + 1, host)]
await onFastify.listen({ port: port + 2, host })
await Promise.all(
  servers.map((server) => server.listening || new Promise((resolve) => server.once('listening', resolve))),
)
console.log('ready')
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const server of servers) server.close()
    void onFastify.close()
  })
}
