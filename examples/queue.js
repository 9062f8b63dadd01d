// @ts-check
// A service that makes 4 pictures a second for all clients together. Further requests wait in a queue for at most 10 seconds.
// Paying customers come first, but the others have their turn, too.
//
//   node queue.js
//   for i in 1 2 3 4 5 6 7 8 9; do curl -s localhost:3000/picture & done; curl -s -H 'x-api-key: gold' localhost:3000/picture
import { everyone, gcra, queue, rateLimit } from '@sluice/fastify'
import fastify from 'fastify'

// Keys of paying customers, as your database has them: a client cannot claim to be one.
const paying = new Set(['gold'])

const app = fastify()
await app.register(rateLimit, {
  name: 'pictures',
  limits: [gcra({ limit: 4, window: '1s', burst: 1, key: everyone() })],
  respond: queue({
    maxWait: '10s',
    size: 50,
    priority: (request) => (paying.has(String(request.headers['x-api-key'])) ? 1 : 0),
    // A second in the queue counts as much as paying, so that others are served, too.
    ageEvery: '1s',
  }),
})

let made = 0
app.get('/picture', async () => `picture ${++made}\n`)

await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.close())
