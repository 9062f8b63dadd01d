// @ts-check
// Fastify: a limit for every route, and routes with a different limit, with none, and with an additional one.
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

// A different limit instead, and no limit.
app.get('/search', { config: { rateLimit: { name: 'search', limit: 5, window: '10s' } } }, async (request) => ({
  found: [],
  remaining: request.rateLimit?.remaining,
}))
app.get('/health', { config: { rateLimit: false } }, async () => ({ ok: true }))

// An additional limit beside the global one.
app.post('/orders', { onRequest: app.rateLimit({ name: 'orders', limit: 1, window: '1s' }) }, async () => ({
  ok: true,
}))

await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.close())
