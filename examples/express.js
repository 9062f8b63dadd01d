// @ts-check
// Express: a limit for everything, and one for a route, with a price per page.
//
//   node express.js
//   curl -i localhost:3000/                                              # RateLimit tells what is left
//   curl -i -H 'x-api-key: k' 'localhost:3000/export?pages=6'            # the second time is refused
//   curl -i -H 'x-api-key: k' 'localhost:3000/export?pages=4'            # while this still fits
import { byHeader, everyone, gcra, rateLimit } from '@sluice/express'
import express from 'express'

const app = express()

// Everything: 100 requests a minute per IP address, exact.
app.use(rateLimit({ name: 'all', limit: 100, window: '1m' }))

// One route: by API key and over all keys, all or none; a page of the export is a unit.
const byKey = gcra({ limit: 50, window: '1h', burst: 10, key: byHeader('x-api-key') })
const overall = gcra({ limit: 5000, window: '1h', key: everyone() })
app.get(
  '/export',
  rateLimit({ name: 'export', limits: [byKey, overall], cost: (req) => Number(req.query.pages ?? 1) }),
  (req, res) => {
    res.json({ exported: true, remaining: req.rateLimit?.remaining })
  },
)

app.get('/', (_req, res) => {
  res.json({ hello: 'world' })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
