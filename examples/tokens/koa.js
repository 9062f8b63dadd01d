// @ts-check
// Budgets of tokens in Koa: requests and tokens a minute by tenant and model, money a day and 4 requests at once by tenant.
//
//   node tokens/model.js &                 # a stand-in for a model
//   node tokens/koa.js                     # with REDIS_URL=redis://localhost:6379, any number of processes
//   curl -iN localhost:3000/v1/chat/completions -H 'Authorization: Bearer sk-acme' --json '{ "model": "small", "stream": true,
//     "messages": [{ "role": "user", "content": "count to 300" }] }'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import { answer, untilClosed } from './answer.js'
import { budgetFor, chatIn, tenantOf } from './budget.js'
import { closeOnSignal, store } from './store.js'

const budget = rateLimit(budgetFor(store, (/** @type {Koa.Context} */ ctx) => ctx.state.chat))

/** @type {Koa.Middleware} */
const authenticate = async (ctx, next) => {
  if (!tenantOf(ctx.get('authorization'))) ctx.throw(401, { headers: { 'WWW-Authenticate': 'Bearer' } })
  await next()
}

/** Reads the body, like a body parser. @type {Koa.Middleware} */
const readChat = async (ctx, next) => {
  // Node reads no more than the announced length.
  if (ctx.request.length === undefined) ctx.throw(411)
  if (ctx.request.length > 256_000) ctx.throw(413)
  ctx.state.chat = chatIn(await json(ctx.req).catch(() => undefined))
  if (!ctx.state.chat) ctx.throw(400, 'expected a known model, messages of text, and stream: true')
  await next()
}

/** @type {Koa.Middleware} */
const respond = async (ctx) => {
  const verdict = /** @type {import('@sluice/koa').Verdict} */ (ctx.state.rateLimit)
  const signal = untilClosed(ctx.res)
  const events = answer(verdict, ctx.state.chat, signal)
  await events.next().catch(() => ctx.throw(502, 'The model failed.'))
  ctx.type = 'text/event-stream'
  ctx.body = Readable.from(events, { signal })
}

const app = new Koa()
app.use(async (ctx, next) => {
  // With a router: router.post('/v1/chat/completions', authenticate, readChat, budget, respond)
  if (ctx.method !== 'POST' || ctx.path !== '/v1/chat/completions') return next()
  await authenticate(ctx, () => readChat(ctx, () => budget(ctx, () => respond(ctx, next))))
})
// Clients that leave are no errors.
app.on('error', (error) => {
  if (!error.headerSent && !(error.status < 500)) console.error(error)
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
closeOnSignal(() => new Promise((resolve) => server.close(resolve)))
