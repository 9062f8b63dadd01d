// @ts-check
// A new limit, without anyone being hurt by it: first it only reports whom it would have refused, then it is enforced
// for a tenth of all clients. Which tenth is a matter of their keys and of a secret, the same ones every time: without the
// secret, clients could choose a key that is left out.
//
//   node roll-out.js
//   for i in 1 2 3 4; do curl -i localhost:3000/reported; done     # all get through
//   curl localhost:3000/would-have-refused                         # and these would not have
//   for i in 1 2 3 4; do curl -i -H 'x-api-key: key-7' localhost:3000/tenth; done
import { byHeader, rateLimit } from '@sluice/express'
import express from 'express'

const app = express()

/** How many requests would have been refused, by path. */
const refused = new Map()

app.get(
  '/reported',
  rateLimit({
    name: 'reported',
    limit: 3,
    window: '1m',
    mode: 'report',
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
const enforceSalt = process.env.ROLL_OUT_SALT ?? 'for development'

app.get(
  '/tenth',
  (req, res, next) => (keys.has(req.get('x-api-key') ?? '') ? next() : res.sendStatus(401)),
  rateLimit({
    name: 'tenth',
    limit: 3,
    window: '1m',
    key: byHeader('x-api-key'),
    enforcePercent: 10,
    enforceSalt,
  }),
  (_req, res) => {
    res.json({ ok: true })
  },
)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
