import { byHeader, byIp, handler, ipRanges, memoryStore, pass, rateLimit, reject, type Verdict } from '@sluice/koa'
import type { Redis } from 'ioredis'
import Koa, { type Context, type Middleware } from 'koa'
import peerLimit from 'koa-ratelimit'
import { expect } from 'vitest'
import { AWAY, awayRedis, passMs, redis, stoppedRedis, storeOn } from './environment.js'
import {
  ask,
  body,
  differs,
  errorOf,
  fields,
  ips,
  type Look,
  paths,
  type Rows,
  type Sent,
  type Show,
  same,
  times,
  untried,
  users,
} from './row.js'

/** An app behind a proxy, whose paths are statuses. */
function serve(limiter: Middleware) {
  const app = new Koa({ proxy: true })
  app.silent = true
  app.use(limiter)
  app.use((ctx) => {
    ctx.status = Number(ctx.path.slice(1) || 200)
    ctx.body = 'ok'
  })
  return app.callback()
}

/** The options of koa-ratelimit, of which its types know some. */
const peerOf = (options: object = {}) =>
  peerLimit({ driver: 'memory', db: new Map(), duration: 60_000, max: 2, ...options } as Parameters<
    typeof peerLimit
  >[0])
const oursOf = (options: object = {}) => rateLimit({ limit: 2, window: '1m', ...options })

const peer =
  (options: object, sent?: readonly Sent[], show?: Show): Look =>
  () =>
    ask(serve(peerOf(options)), sent, show)
const ours =
  (options: object, sent?: readonly Sent[], show?: Show): Look =>
  () =>
    ask(serve(oursOf(options)), sent, show)
const onRedis = (client: Redis) => ({ driver: 'redis', db: client })

/** A request, one after almost a minute, and two after a little more than a minute. */
const acrossWindows =
  (limiter: () => Middleware | Promise<Middleware>): Look =>
  async () => {
    const app = serve(await limiter())
    const first = await ask(app, times(1))
    passMs(59_000)
    const second = await ask(app, times(1))
    passMs(2000)
    return `${first}, ${second}, ${await ask(app, times(2))}`
  }

/** A request, one that comes a second before so many ms have passed, and one that comes a second after them. */
const almostAfter =
  (ms: number, limiter: () => Middleware): Look =>
  async () => {
    const app = serve(limiter())
    const first = await ask(app, times(1))
    passMs(ms - 1000)
    const second = await ask(app, times(1))
    passMs(2000)
    return `${first}, ${second}, ${await ask(app, times(1))}`
  }

const agent = (ctx: Context) => ctx.get('user')
const isEmpty = (ctx: Context) => ctx.path === '/204'
const LEGACY = fields('x-ratelimit-limit', 'x-ratelimit-remaining')
const OWN_NAMES = fields('x-quota', 'x-left', 'x-back')
const twoOfOneNetwork = ips('2001:db8::1', '2001:db8::2')

export const ROWS: Rows = {
  // Differences
  algorithm: [
    differs(
      acrossWindows(peerOf),
      acrossWindows(oursOf),
      { peer: '200, 200, 200, 200', ours: '200, 200, 200, 429' },
      'in memory a fixed window',
    ),
    same(
      acrossWindows(async () => peerOf(onRedis(await stoppedRedis()))),
      acrossWindows(oursOf),
      '200, 200, 200, 429',
    ),
  ],
  'refused requests': same(
    async () => {
      const client = await redis()
      return `${await ask(serve(peerOf(onRedis(client))), times(4))}: ${await client.zcard('limit:203.0.113.9')}`
    },
    async () => {
      const limited = oursOf({ store: storeOn(await redis()) })
      const statuses = await ask(serve(limited), times(4))
      return `${statuses}: ${2 - (await limited.limiter.peek({ ip: '203.0.113.9' })).remaining}`
    },
    '200, 200, 429, 429: 2',
  ),
  'default limit': differs(
    () => ask(serve(peerLimit({ driver: 'memory', db: new Map() })), times(1), fields('x-ratelimit-limit')),
    () => errorOf(() => rateLimit({} as never)),
    {
      peer: '200 x-ratelimit-limit=2500',
      ours: 'policy "default": limit: expected a limit and a window, or limits, got undefined',
    },
    'a limit is required',
  ),
  'default store': differs(
    () => ask(serve(peerLimit({ db: new Map() } as never)), times(1)),
    () => ask(serve(oursOf()), times(1)),
    { peer: '500', ours: '200' },
    '| default store | Redis | memory |',
  ),
  IPv6: differs(
    peer({ max: 1 }, twoOfOneNetwork),
    ours({ limit: 1 }, twoOfOneNetwork),
    { peer: '200, 200', ours: '200, 429' },
    'one client is a /64',
  ),
  memory: differs(
    peer({ max: 1 }, ips('203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.1')),
    ours(
      { limit: 1, store: memoryStore({ maxKeys: 2 }) },
      ips('203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.1'),
    ),
    { peer: '200, 200, 200, 429', ours: '200, 200, 200, 200' },
    '| bounded |',
  ),
  'Redis fails': differs(
    async () => ask(serve(peerOf(onRedis(await awayRedis())))),
    async () => ask(serve(oursOf({ store: storeOn(await awayRedis(), AWAY) }))),
    { peer: '500, 500, 500', ours: '200, 200, 429' },
    'each process decides by itself',
  ),
  'quota headers': [
    same(
      peer({}, times(3), LEGACY),
      ours({ headers: 'legacy' }, times(3), LEGACY),
      [1, 0, 0].map((left, n) => `${n < 2 ? 200 : 429} x-ratelimit-limit=2 x-ratelimit-remaining=${left}`).join(', '),
    ),
    differs(
      peer({}, times(1), fields('ratelimit')),
      ours({}, times(1), fields('ratelimit')),
      { peer: '200 ratelimit=-', ours: '200 ratelimit="default";r=1;t=60' },
      '`RateLimit` fields',
    ),
  ],
  'existing counts': differs(
    async () => {
      const client = await redis()
      await ask(serve(peerOf(onRedis(client))))
      return `${await ask(serve(peerOf(onRedis(client))), times(1))}: ${await client.keys('*')}`
    },
    async () => {
      const client = await redis()
      await ask(serve(peerOf(onRedis(client))))
      return ask(serve(oursOf({ store: storeOn(client) })), times(1))
    },
    { peer: '429: limit:203.0.113.9', ours: '200' },
    'clients start afresh',
  ),

  // Options
  '`driver`': [
    same(peer({ driver: 'memory' }), ours({ store: memoryStore() }), '200, 200, 429'),
    same(
      async () => {
        const client = await redis()
        return [
          await ask(serve(peerOf(onRedis(client))), times(2)),
          await ask(serve(peerOf(onRedis(client))), times(1)),
        ].join(', ')
      },
      async () => {
        const client = await redis()
        const limited = () => oursOf({ name: 'api', store: storeOn(client) })
        return [await ask(serve(limited()), times(2)), await ask(serve(limited()), times(1))].join(', ')
      },
      '200, 200, 429',
    ),
  ],
  '`db`': untried('tried under `driver`'),
  '`duration`': same(
    almostAfter(90_000, () => peerOf({ duration: 90_000, max: 1 })),
    almostAfter(90_000, () => oursOf({ window: 90_000, limit: 1 })),
    '200, 429, 200',
  ),
  '`max`': [
    same(peer({ max: 1 }), ours({ limit: 1 }), '200, 429, 429'),
    same(peer({ max: 0 }), ours({ limit: 0 }), '429, 429, 429'),
  ],
  '`id`': [
    same(
      peer({ max: 1, id: agent }, users('ann', 'bob', 'ann')),
      ours({ limit: 1, key: byHeader('user') }, users('ann', 'bob', 'ann')),
      '200, 200, 429',
    ),
    same(
      peer({ max: 1, id: (ctx: Context) => !isEmpty(ctx) && ctx.ip }, paths('/', '/', '/204', '/204')),
      ours({ limit: 1, skip: isEmpty }, paths('/', '/', '/204', '/204')),
      '200, 429, 204, 204',
    ),
    same(peer({ max: 1, id: (ctx: Context) => ctx.ip }), ours({ limit: 1, key: byIp() }), '200, 429, 429'),
  ],
  '`namespace`': same(
    async () => {
      const client = await redis()
      await ask(serve(peerOf({ ...onRedis(client), namespace: 'api' })), times(1))
      return (await client.keys('*')).every((key) => key.startsWith('api:'))
    },
    async () => {
      const client = await redis()
      await ask(serve(oursOf({ store: storeOn(client, { prefix: 'api:', timeout: 5000 }) })), times(1))
      return (await client.keys('*')).every((key) => key.startsWith('api:'))
    },
    true,
  ),
  '`headers` (`remaining`, `reset`, `total`)': differs(
    peer({ headers: { total: 'X-Quota', remaining: 'X-Left', reset: 'X-Back' } }, times(1), OWN_NAMES),
    ours(
      { headers: { format: 'legacy', names: { limit: 'X-Quota', remaining: 'X-Left', reset: 'X-Back' } } },
      times(1),
      OWN_NAMES,
    ),
    {
      peer: expect.stringMatching(/^200 x-quota=2 x-left=1 x-back=\d+\.\d+$/),
      ours: '200 x-quota=2 x-left=1 x-back=1767225660',
    },
    'In memory, koa-ratelimit sends a fraction of a second',
  ),
  '`remaining`, `reset`, `total`': untried('tried under `headers`'),
  '`disableHeader`': same(
    peer({ disableHeader: true }, times(1), fields('x-ratelimit-limit', 'ratelimit')),
    ours({ headers: false }, times(1), fields('x-ratelimit-limit', 'ratelimit')),
    '200 x-ratelimit-limit=- ratelimit=-',
  ),
  '`errorMessage`': same(
    peer({ max: 1, errorMessage: 'Slow down.' }, times(2), body),
    ours({ limit: 1, respond: reject({ body: 'Slow down.' }) }, times(2), body),
    '200 ok, 429 Slow down.',
  ),
  '`status`': [
    same(peer({ max: 1, status: 503 }), ours({ limit: 1, respond: reject({ status: 503 }) }), '200, 503, 503'),
    same(
      peer({ max: 1, status: 420 }),
      ours({
        limit: 1,
        respond: handler((ctx) => {
          ctx.status = 420
        }),
      }),
      '200, 420, 420',
    ),
  ],
  '`throw`': same(
    () => thrown(peerOf({ max: 1, throw: true })),
    () => thrown(oursOf({ limit: 1, respond: pass() })),
    ['none', '429 true'],
  ),
  '`whitelist`': same(
    peer({ max: 1, whitelist: isEmpty }, paths('/204', '/204', '/', '/')),
    ours({ limit: 1, allow: isEmpty }, paths('/204', '/204', '/', '/')),
    '204, 204, 200, 429',
  ),
  '`blacklist`': same(
    peer({ max: 1, blacklist: (ctx: Context) => ctx.ip === '203.0.113.7' }, ips('203.0.113.7', '203.0.113.8')),
    ours({ limit: 1, deny: ipRanges(['203.0.113.7']) }, ips('203.0.113.7', '203.0.113.8')),
    '403, 200',
  ),
  '`onLimited`': same(async () => {
    const noticed: string[] = []
    await ask(serve(peerOf({ max: 1, onLimited: (ctx: Context) => noticed.push(ctx.path) })))
    return noticed
  }, async () => {
    const noticed: string[] = []
    const onVerdict = (ctx: Context, { allowed }: Verdict) => void (allowed || noticed.push(ctx.path))
    await ask(serve(oursOf({ limit: 1, onVerdict })))
    return noticed
  }, ['/', '/']),
}

/** The status of the error that three requests throw, and whether it has headers. */
async function thrown(limiter: Middleware): Promise<unknown[]> {
  const errors: string[] = []
  const app = new Koa()
  app.silent = true
  app.use((_ctx, next) =>
    next().then(
      () => void errors.push('none'),
      (error) => {
        errors.push(`${error.status} ${'headers' in error}`)
        throw error
      },
    ),
  )
  app.use(limiter)
  await ask(app.callback(), times(2))
  return errors
}
