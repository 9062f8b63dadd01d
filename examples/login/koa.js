// @ts-check
// Login protection in Koa: limits by account and by address, one ladder of bans for login and site, and traps for probes.
//
//   node login/koa.js
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "guess" }'             # the sixth is refused,
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "correct horse" }'     # and then this is, too
//   curl -i localhost:3000/login --json '{ "account": "bob", "password": "battery staple" }'    # as often as you like
//
// Addresses of your own machine are not banned. To see a ban:
//
//   BAN_PRIVATE=1 node login/koa.js
//   curl -i localhost:3000/.env; curl -i localhost:3000/.env; curl -i localhost:3000/           # banned for ten minutes
import { json } from 'node:stream/consumers'
import { byIp, escalate, hashedKey, keyed, memoryStore, rateLimit, reject, slidingLog, tarpit, trap } from '@sluice/koa'
import Koa from 'koa'
import { isPassword, loginIn } from './accounts.js'

const store = memoryStore() // redisStore(client) where there is more than one process

// One ladder: a client that is banned by one policy is banned from both. The first ban is refused at once; later ones
// keep up to 100 connections waiting before they are.
const ladder = /** @type {const} */ ({
  by: 'ip',
  after: 30,
  within: '1h',
  for: ['10m', '1h', '1d'],
  scope: 'store',
  respond: escalate([reject(), tarpit({ for: '5s' })]),
  // Set it only to try bans: the addresses of proxies that are not named are private ones, too.
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

const byAccount = keyed('account', (/** @type {Koa.Context} */ ctx) => hashedKey(ctx.state.login.account))
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

/** Reads the body, like a body parser. @type {Koa.Middleware} */
const readLogin = async (ctx, next) => {
  // Node reads no more than the announced length.
  if (ctx.request.length === undefined) ctx.throw(411)
  if (ctx.request.length > 1024) ctx.throw(413)
  const body = await json(ctx.req).catch(() => undefined)
  ctx.state.login = loginIn(body)
  if (!ctx.state.login) ctx.throw(400, 'expected account and password')
  await next()
}

/** @type {Koa.Middleware} */
const signIn = async (ctx) => {
  const { account, password } = ctx.state.login
  const isRight = await isPassword(account, password)
  ctx.status = isRight ? 200 : 401
  ctx.body = isRight ? { welcome: account } : { error: 'wrong account or password' }
}

const app = new Koa()
app.use(site)
app.use(async (ctx, next) => {
  // With a router: router.post('/login', readLogin, login, signIn)
  if (ctx.method !== 'POST' || ctx.path !== '/login') return next()
  await readLogin(ctx, () => login(ctx, () => signIn(ctx, next)))
})
app.use((ctx) => {
  if (ctx.path === '/') ctx.body = { hello: 'world' }
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
