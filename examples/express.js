// @ts-check
// Express: a limit for everything, and one for a route, with a cost per page.
//
//   node express.js
//   curl -i localhost:3000/                                              # RateLimit shows the remaining requests
//   curl -i -H 'x-api-key: key-of-ann' 'localhost:3000/export?pages=6'   # the second time is refused
//   curl -i -H 'x-api-key: key-of-ann' 'localhost:3000/export?pages=4'   # while this still fits
import { byUser, everyone, gcra, rateLimit } from '@sluice/express'
import express from 'express'

const app = express()

// Everything: 100 requests a minute per IP address, exact.
app.use(rateLimit({ name: 'all', limit: 100, window: '1m' }))

// Only known keys reach the next limiter, as each made-up key would have its own quota.
const users = new Map([['key-of-ann', 'ann']])
/** @param {express.Request} req */
const userOf = (req) => users.get(req.get('x-api-key') ?? '')

/** The number of exported pages, at least one, which is also the cost. @param {express.Request} req */
const pagesOf = (req) => Math.min(10, Math.max(1, Math.trunc(Number(req.query.pages)) || 1))

// One route: a limit by user and one over all users, all or none. A page of the export costs one unit.
const byAccount = gcra({ limit: 50, window: '1h', burst: 10, key: byUser(userOf) })
const overall = gcra({ limit: 5000, window: '1h', key: everyone() })
app.get(
  '/export',
  (req, res, next) => (userOf(req) ? next() : res.sendStatus(401)),
  rateLimit({ name: 'export', limits: [byAccount, overall], cost: pagesOf }),
  (req, res) => {
    res.json({ exported: pagesOf(req), remaining: req.rateLimit?.remaining })
  },
)

app.get('/', (_req, res) => {
  res.json({ hello: 'world' })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
