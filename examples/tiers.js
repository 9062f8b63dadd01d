// @ts-check
// An API with plans and costs: a free key has 10 units a minute, a pro key 100. A search costs 1. A report is charged 8 and
// refunds the units that it did not need. Pages of other origins may read the quota.
//
//   node tiers.js
//   curl -i -H 'x-api-key: free-1' localhost:3000/search
//   curl -i -H 'x-api-key: free-1' 'localhost:3000/report?pages=3'    # is charged 8, costs 3
//   curl -i -H 'x-api-key: pro-1' 'localhost:3000/report?pages=8'
import { byHeader, perMinute, rateLimit } from '@sluice/express'
import express from 'express'

const plans = new Map([
  ['free-1', 'free'],
  ['pro-1', 'pro'],
])

const app = express()

// Browsers hide the quota from scripts of other origins unless it is exposed. This stands before the limiter, so that
// refusals expose it, too. It also responds to the preflights that browsers send before a key, without a charge.
app.use((req, res, next) => {
  res.set('Access-Control-Allow-Origin', '*')
  res.set('Access-Control-Expose-Headers', 'RateLimit, RateLimit-Policy, Retry-After')
  if (req.method === 'OPTIONS') res.set('Access-Control-Allow-Headers', 'x-api-key').sendStatus(204)
  else next()
})

// Only known keys reach the limiter, as made-up ones must not fill its memory.
app.use((req, res, next) => {
  if (plans.has(req.get('x-api-key') ?? '')) next()
  else res.status(401).json({ error: 'x-api-key: free-1 or pro-1' })
})

const maxPages = 8

app.use(
  rateLimit({
    name: 'api',
    key: byHeader('x-api-key'),
    tiers: { free: [perMinute(10)], pro: [perMinute(100)] },
    tier: (req) => plans.get(req.get('x-api-key') ?? '') ?? 'free',
    cost: (req) => (req.path === '/report' ? maxPages : 1),
  }),
)

app.get('/search', (req, res) => {
  res.json({ found: [], remaining: req.rateLimit?.remaining })
})

app.get('/report', async (req, res) => {
  const pages = Math.min(maxPages, Math.max(1, Math.trunc(Number(req.query.pages)) || 1))
  await req.rateLimit?.settle(pages)
  res.json({ pages })
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
