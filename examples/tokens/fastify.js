// @ts-check
// Budgets of tokens in Fastify: requests and tokens a minute by tenant and model, money a day and 4 requests at once by tenant.
//
//   node tokens/model.js &                 # a stand-in for a model
//   node tokens/fastify.js                 # with REDIS_URL=redis://localhost:6379, any number of processes
//   curl -iN localhost:3000/v1/chat/completions -H 'Authorization: Bearer sk-acme' --json '{ "model": "small", "stream": true,
//     "messages": [{ "role": "user", "content": "count to 300" }] }'
import { Readable } from 'node:stream'
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { answer, untilClosed } from './answer.js'
import { budgetFor, chatIn, tenantOf } from './budget.js'
import { closeOnSignal, store } from './store.js'

/** @param {fastify.FastifyRequest} request */
const chatOf = ({ body }) => /** @type {import('./budget.js').Chat} */ (body)

/** @type {import('fastify').onRequestAsyncHookHandler} */
const authenticate = async (request, reply) => {
  if (!tenantOf(request.headers.authorization)) return reply.code(401).header('WWW-Authenticate', 'Bearer').send()
}

/** @type {import('fastify').preHandlerAsyncHookHandler} */
const readChat = async (request, reply) => {
  request.body = chatIn(request.body)
  const error = { message: 'expected a known model, messages of text, and stream: true' }
  if (!request.body) return reply.code(400).send({ error })
}

const app = fastify({ bodyLimit: 256_000 })
await app.register(rateLimit, { global: false })
const budget = app.rateLimit(budgetFor(store, chatOf))

app.post(
  '/v1/chat/completions',
  { onRequest: authenticate, preHandler: [readChat, budget] },
  async (request, reply) => {
    const verdict = /** @type {import('@sluice/fastify').Verdict} */ (request.rateLimit)
    const signal = untilClosed(reply.raw)
    const events = answer(verdict, chatOf(request), signal)
    try {
      await events.next()
    } catch {
      return reply.code(502).send({ error: { message: 'The model failed.' } })
    }
    return reply.type('text/event-stream').send(Readable.from(events, { signal }))
  },
)

await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')
closeOnSignal(() => app.close())
