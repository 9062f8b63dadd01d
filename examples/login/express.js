// @ts-check
// Login protection in Express: limits by account and by address, one ladder of bans for login and site, and traps for probes.
//
//   node login/express.js
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "guess" }'             # the sixth is refused,
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "correct horse" }'     # and then this is, too
//   curl -i localhost:3000/login --json '{ "account": "bob", "password": "battery staple" }'    # as often as you like
//
// Addresses of your own machine are not banned. To see a ban:
//
//   BAN_PRIVATE=1 node login/express.js
//   curl -i localhost:3000/.env; curl -i localhost:3000/.env; curl -i localhost:3000/           # banned for ten minutes
import {
  byIp,
  escalate,
  hashedKey,
  keyed,
  memoryStore,
  rateLimit,
  reject,
  slidingLog,
  tarpit,
  trap,
} from '@sluice/express'
import express from 'express'
import { isPassword, loginIn } from './accounts.js'

const store = memoryStore() // redisStore(client) where there is more than one process

// One ladder: a client that is banned by one policy is banned from both. During the first ban, requests are refused at
// once; during later ones, up to 100 connections wait before the refusal.
const ladder = /** @type {const} */ ({
  by: 'ip',
  after: 30,
  within: '1h',
  for: ['10m', '1h', '1d'],
  scope: 'store',
  respond: escalate([reject(), tarpit({ for: '5s' })]),
  // Set it only to try bans: proxies that you have not configured have private addresses, too.
  private: process.env.BAN_PRIVATE === '1',
})

const site = rateLimit({
  name: 'site',
  store,
  limit: 300,
  window: '1m',
  key: byIp(),
  ban: { ...ladder, trap: trap(['/wp-login.php', '/xmlrpc.php', '/.env', '/.git/*'], { weight: 15 }) },
})

const byAccount = keyed('account', (/** @type {express.Request} */ req) => hashedKey(req.body.account))
const login = rateLimit({
  name: 'login',
  store,
  count: { only: 'failure' }, // correct passwords do not count
  limits: [
    // Also for accounts that do not exist, so that responses do not reveal which exist.
    slidingLog({ name: 'account', limit: 5, window: '15m', key: byAccount }),
    slidingLog({ name: 'address', limit: 20, window: '15m', key: byIp() }),
  ],
  // Wrong passwords are its strikes: refusals would ban the owner of an account that others attack.
  ban: { ...ladder, count: { only: 401 } },
})

/** @type {express.RequestHandler} */
const readLogin = (req, res, next) => {
  req.body = loginIn(req.body)
  if (req.body) next()
  else res.status(400).json({ error: 'expected account and password' })
}

const app = express()
app.use(site)
app.post('/login', express.json({ limit: '1kb' }), readLogin, login, async (req, res) => {
  const isRight = await isPassword(req.body.account, req.body.password)
  res.status(isRight ? 200 : 401).json(isRight ? { welcome: req.body.account } : { error: 'wrong account or password' })
})
app.get('/', (_req, res) => void res.json({ hello: 'world' }))

// Responses to unreadable requests show no internals.
/** @type {express.ErrorRequestHandler} */
const onError = (error, _req, res, next) => {
  if (res.headersSent) next(error)
  else res.sendStatus(error.status ?? 500)
}
app.use(onError)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
