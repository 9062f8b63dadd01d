// @ts-check
// Budgets of tokens in Express: requests and tokens a minute by tenant and model, money a day and 4 requests at once by tenant.
//
//   node tokens/model.js &                 # a stand-in for a model
//   node tokens/express.js                 # with REDIS_URL=redis://localhost:6379, any number of processes
//   curl -iN localhost:3000/v1/chat/completions -H 'Authorization: Bearer sk-acme' --json '{ "model": "small", "stream": true,
//     "messages": [{ "role": "user", "content": "count to 300" }] }'
import { pipeline } from 'node:stream/promises'
import { rateLimit, releasePermits } from '@sluice/express'
import express from 'express'
import { answer, untilClosed } from './answer.js'
import { budgetFor, chatIn, tenantOf } from './budget.js'
import { closeOnSignal, store } from './store.js'

const budget = rateLimit(budgetFor(store, (/** @type {express.Request} */ req) => req.body))

/** @type {express.RequestHandler} */
const authenticate = (req, res, next) => {
  if (tenantOf(req.get('authorization'))) next()
  else res.set('WWW-Authenticate', 'Bearer').sendStatus(401)
}

/** @type {express.RequestHandler} */
const readChat = (req, res, next) => {
  req.body = chatIn(req.body)
  if (req.body) next()
  else res.status(400).json({ error: { message: 'expected a known model, messages of text, and stream: true' } })
}

/** @type {express.RequestHandler} */
const respond = async (req, res) => {
  const verdict = /** @type {import('@sluice/express').Verdict} */ (req.rateLimit)
  const signal = untilClosed(res)
  const events = answer(verdict, req.body, signal)
  try {
    await events.next()
    res.type('text/event-stream')
    await pipeline(events, res, { signal })
  } catch {
    if (res.closed) await releasePermits(res)
    else if (!res.headersSent) res.status(502).json({ error: { message: 'The model failed.' } })
  }
}

const app = express()
app.post('/v1/chat/completions', authenticate, express.json({ limit: '256kb' }), readChat, budget, respond)

// Responses to unreadable requests show no internals.
/** @type {express.ErrorRequestHandler} */
const onError = (error, _req, res, next) => {
  if (res.headersSent) next(error)
  else res.sendStatus(error.status ?? 500)
}
app.use(onError)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
closeOnSignal(() => new Promise((resolve) => server.close(resolve)))
