// @ts-check
// Fastify: a limit for every route, routes with one of their own, with none, and with one more.
//
//   node fastify.js
//   for i in 1 2 3 4 5 6; do curl -i localhost:3000/search; done         # the sixth within 10 seconds is refused
//   curl -i localhost:3000/health                                        # never limited
//   curl -i -X POST localhost:3000/orders                                # once a second
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'

const app = fastify()

// Every route, unknown ones too: 100 requests a minute per IP address.
await app.register(rateLimit, { name: 'all', limit: 100, window: '1m' })

// A limit of its own instead, and none at all.
app.get('/search', { config: { rateLimit: { name: 'search', limit: 5, window: '10s' } } }, async (request) => ({
  found: [],
  remaining: request.rateLimit?.remaining,
}))
app.get('/health', { config: { rateLimit: false } }, async () => ({ ok: true }))

// One more beside the global one.
app.post('/orders', { onRequest: app.rateLimit({ name: 'orders', limit: 1, window: '1s' }) }, async () => ({
  ok: true,
}))

await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.close())
