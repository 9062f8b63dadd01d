// @ts-check
// Login protection in Fastify: limits by account and by address, one ladder of bans for login and site, and traps for probes.
//
//   node login/fastify.js
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "guess" }'             # the sixth is refused,
//   curl -i localhost:3000/login --json '{ "account": "ann", "password": "correct horse" }'     # and then this is, too
//   curl -i localhost:3000/login --json '{ "account": "bob", "password": "battery staple" }'    # as often as you like
//
// Addresses of your own machine are not banned. To see a ban:
//
//   BAN_PRIVATE=1 node login/fastify.js
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
} from '@sluice/fastify'
import fastify from 'fastify'
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

// A type that is wrong is refused, and not turned into the right one.
const app = fastify({ bodyLimit: 1024, ajv: { customOptions: { coerceTypes: false } } })

// Every route, unknown ones too.
await app.register(rateLimit, {
  name: 'site',
  store,
  limit: 300,
  window: '1m',
  key: byIp(),
  ban: { ...ladder, trap: trap(['/wp-login.php', '/xmlrpc.php', '/.env', '/.git/*'], { weight: 15 }) },
})

const byAccount = keyed('account', (/** @type {fastify.FastifyRequest} */ request) => {
  return hashedKey(/** @type {{ account: string }} */ (request.body).account)
})
const login = app.rateLimit({
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

/** @type {import('fastify').preHandlerAsyncHookHandler} */
const readLogin = async (request, reply) => {
  request.body = loginIn(request.body)
  if (!request.body) return reply.code(400).send({ error: 'expected account and password' })
}

app.post('/login', { preHandler: [readLogin, login] }, async (request, reply) => {
  const { account, password } = /** @type {{ account: string, password: string }} */ (request.body)
  const isRight = await isPassword(account, password)
  return reply.code(isRight ? 200 : 401).send(isRight ? { welcome: account } : { error: 'wrong account or password' })
})
app.get('/', async () => ({ hello: 'world' }))

await app.listen({ port: Number(process.env.PORT ?? 3000) })
console.log('ready')
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.close())
