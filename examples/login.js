// @ts-check
// Login protection: 3 wrong passwords per account and 6 per address in 15 minutes. Right ones do not count, and tries
// that run in parallel cannot slip through: each is charged before it is checked, and gets that back if it was right.
//
//   node login.js
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "guess" }'              # the fourth is refused
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "correct horse" }'      # and so is this, then
//   curl -i localhost:3000/login --json '{ "account": "bob", "password": "battery staple" }'     # as often as you like
import { scryptSync, timingSafeEqual } from 'node:crypto'
import { byIp, hashedKey, keyed, rateLimit, slidingLog } from '@sluice/express'
import express from 'express'

/** @param {string} account @param {string} password */
const hash = (account, password) => scryptSync(password, `salt of ${account}`, 32)
const passwords = new Map([
  ['ann', hash('ann', 'correct horse')],
  ['bob', hash('bob', 'battery staple')],
])

/**
 * Reads a login once, so that limiter and handler see the same account, however it is written; what is none is answered 400.
 *
 * @type {express.RequestHandler}
 */
const readLogin = (req, res, next) => {
  const { account, password } = req.body ?? {}
  if (typeof account !== 'string' || typeof password !== 'string' || account.trim() === '') {
    res.status(400).json({ error: 'expected account and password' })
    return
  }
  req.body = { account: account.trim().toLowerCase(), password }
  next()
}

const byAccount = keyed('account', (/** @type {express.Request} */ req) => hashedKey(req.body.account))

const app = express()

app.post(
  '/login',
  express.json({ limit: '1kb' }),
  readLogin,
  rateLimit({
    name: 'login',
    limits: [
      // Also for accounts that do not exist, so that the answers do not tell which do.
      slidingLog({ name: 'account', limit: 3, window: '15m', key: byAccount }),
      slidingLog({ name: 'address', limit: 6, window: '15m', key: byIp() }),
    ],
    count: 'failure',
  }),
  (req, res) => {
    const { account, password } = req.body
    const given = hash(account, password)
    const isRight = timingSafeEqual(given, passwords.get(account) ?? Buffer.alloc(32))
    res.status(isRight ? 200 : 401).json(isRight ? { welcome: account } : { error: 'wrong account or password' })
  },
)

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
