// @ts-check
// Rolls a new limit out in two steps: first it only reports which requests it would have refused, then it is enforced for
// a tenth of all clients. Their keys and a secret determine the tenth, so that clients cannot choose a key outside of it.
// Use the same secret in all processes and at every start; without one in the environment, each start chooses a new one.
//
//   ROLL_OUT_SALT=$(openssl rand -hex 16) node roll-out.js
//   for i in 1 2 3 4; do curl -i localhost:3000/reported; done     # all pass
//   curl localhost:3000/would-have-refused                         # the number that would not have passed
//   for i in 1 2 3 4; do curl -i -H 'x-api-key: key-7' localhost:3000/tenth; done
import { randomUUID } from 'node:crypto'
import { byHeader, rateLimit } from '@sluice/express'
import express from 'express'

const app = express()

/** The number of requests that would have been refused, by path. */
const refused = new Map()

app.get(
  '/reported',
  rateLimit({
    name: 'reported',
    limit: 3,
    window: '1m',
    enforce: { mode: 'report' },
    onVerdict: (req, verdict) => {
      if (!verdict.allowed) refused.set(req.path, (refused.get(req.path) ?? 0) + 1)
    },
  }),
  (_req, res) => {
    res.json({ ok: true })
  },
)

app.get('/would-have-refused', (_req, res) => {
  res.json(Object.fromEntries(refused))
})

/** Keys that the server knows. */
const keys = new Set(Array.from({ length: 100 }, (_, n) => `key-${n}`))
const salt = process.env.ROLL_OUT_SALT ?? randomUUID()

app.get(
  '/tenth',
  (req, res, next) => (keys.has(req.get('x-api-key') ?? '') ? next() : res.sendStatus(401)),
  rateLimit({
    name: 'tenth',
    limit: 3,
    window: '1m',
    key: byHeader('x-api-key'),
    enforce: { percent: 10, salt },
  }),
  (_req, res) => {
    res.json({ ok: true })
  },
)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
