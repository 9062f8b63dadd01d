import {
  byHeader,
  byIp,
  byUser,
  compose,
  delay,
  fixedWindow,
  handler,
  memoryStore,
  pass,
  rateLimit,
  reject,
  type Verdict,
} from '@sluice/express'
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express'
import { ipKeyGenerator, MemoryStore, type Options, rateLimit as peerLimit } from 'express-rate-limit'
import { slowDown } from 'express-slow-down'
import type { Redis } from 'ioredis'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { expect, vi } from 'vitest'
import { AWAY, awayRedis, passMs, redis, storeOn } from './environment.js'
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

/** An app behind one proxy, whose paths are statuses. */
function serve(limiter: RequestHandler, read: (req: Request) => unknown = () => 'ok') {
  const app = express()
  app.set('trust proxy', 1)
  app.use(limiter)
  app.get('/', (req, res) => void res.json(read(req)))
  app.get('/:status', (req, res) => void res.sendStatus(Number(req.params.status)))
  app.use((error: Error & { status?: number }, _req: Request, res: Response, _next: NextFunction) => {
    res.status(error.status ?? 500).send(`handled ${error.name}`)
  })
  return app
}

const SILENT = { warn() {}, error() {} }
const peerOf = (options: Partial<Options>) =>
  peerLimit({ windowMs: 60_000, limit: 2, validate: false, legacyHeaders: false, logger: SILENT, ...options })
const oursOf = (options: object) => rateLimit({ limit: 2, window: '1m', ...options })

// Each look makes a limiter of its own.
const peer =
  (options: Partial<Options>, sent?: readonly Sent[], show?: Show): Look =>
  () =>
    ask(serve(peerOf(options)), sent, show)
const ours =
  (options: object, sent?: readonly Sent[], show?: Show): Look =>
  () =>
    ask(serve(oursOf(options)), sent, show)

/** A request, one after almost a minute, and two after a little more than a minute. */
const acrossWindows =
  (limiter: () => RequestHandler): Look =>
  async () => {
    const app = serve(limiter())
    const first = await ask(app, times(1))
    passMs(59_000)
    const second = await ask(app, times(1))
    passMs(2000)
    return `${first}, ${second}, ${await ask(app, times(2))}`
  }

/** What a handler finds in its request. */
const peerRead =
  (read: (info: Record<string, unknown>) => unknown): Look =>
  () =>
    ask(
      serve(peerOf({}), (req) => read(property(req, 'rateLimit'))),
      times(1),
      body,
    )
const oursRead =
  (read: (verdict: Verdict) => unknown): Look =>
  () =>
    ask(
      serve(oursOf({}), (req) => read(req.rateLimit as Verdict)),
      times(1),
      body,
    )

/** Delays that no other timer of the process has. */
const DELAYS = [23, 37, 46]

/** The delays of requests, in ms, by the timers that they wait for. */
const delaysOf =
  (limiter: () => RequestHandler, count: number): Look =>
  async () => {
    vi.useRealTimers()
    const timers = vi.spyOn(globalThis, 'setTimeout')
    await ask(serve(limiter()), times(count))
    const delays = timers.mock.calls.map(([, ms]) => Number(ms)).filter((ms) => DELAYS.includes(ms))
    timers.mockRestore()
    return String(delays)
  }
const slowed = (options: Parameters<typeof slowDown>[0], count: number) =>
  delaysOf(() => slowDown({ validate: false, ...options }), count)
const delayed = (options: Parameters<typeof delay>[0], count: number) =>
  delaysOf(() => oursOf({ limit: 10, respond: delay(options) }), count)

/** The types of both libraries declare `rateLimit` of requests. */
const property = (req: Request, name: string) => (req as never as Record<string, Record<string, unknown>>)[name] ?? {}

const peerStore = (client: Redis, prefix?: string) =>
  new RedisStore({
    sendCommand: (command: string, ...args: string[]) => client.call(command, ...args) as Promise<RedisReply>,
    ...(prefix !== undefined && { prefix }),
  })

const quota = (...prefixes: string[]) =>
  fields(...prefixes.flatMap((prefix) => [`${prefix}-limit`, `${prefix}-remaining`, `${prefix}-reset`]))
const agent = (req: Request) => req.get('user')
const twoNetworks = ips('2001:db8::1', '2001:db8:0:1::1')
const TEXT = { accept: 'text/plain' }

export const ROWS: Rows = {
  // Differences
  algorithm: [
    differs(
      acrossWindows(() => peerOf({})),
      acrossWindows(() => oursOf({})),
      { peer: '200, 200, 200, 200', ours: '200, 200, 200, 429' },
      'Up to twice the limit can pass in a window',
    ),
    same(
      acrossWindows(() => peerOf({})),
      acrossWindows(() => rateLimit({ limits: [fixedWindow({ limit: 2, window: '1m', anchor: 'first-request' })] })),
      '200, 200, 200, 200',
    ),
  ],
  'refused requests': differs(
    async () => {
      const limiter = peerOf({})
      return `${await ask(serve(limiter))}: ${(await limiter.getKey('203.0.113.9'))?.totalHits}`
    },
    async () => {
      const limited = oursOf({})
      return `${await ask(serve(limited))}: ${2 - (await limited.limiter.peek({ ip: '203.0.113.9' })).remaining}`
    },
    { peer: '200, 200, 429: 3', ours: '200, 200, 429: 2' },
    'do not count',
  ),
  'default limit': differs(
    () => ask(serve(peerLimit()), times(6), fields('retry-after')),
    () => errorOf(() => rateLimit({} as never)),
    {
      peer: `${'200 retry-after=-, '.repeat(5)}429 retry-after=60`,
      ours: 'policy "default": limit: expected a limit and a window, or limits, got undefined',
    },
    'a limit is required',
  ),
  IPv6: [
    differs(
      peer({ limit: 1 }, twoNetworks),
      ours({ limit: 1 }, twoNetworks),
      { peer: '200, 429', ours: '200, 200' },
      'one client is a /64',
    ),
    same(peer({ limit: 1 }, twoNetworks), ours({ limit: 1, key: byIp({ ipv6Prefix: 56 }) }, twoNetworks), '200, 429'),
  ],
  keys: differs(
    peer({ limit: 1, keyGenerator: (req) => agent(req) ?? String(req.ip) }, users('', '203.0.113.9')),
    ours({ limit: 1, key: byUser(agent), anonymous: 'by-ip' }, users('', '203.0.113.9')),
    { peer: '200, 429', ours: '200, 200' },
    'so they never mix',
  ),
  'a missing key': [
    differs(
      peer({ limit: 1, keyGenerator: (req) => agent(req) as string }, ips('203.0.113.1', '203.0.113.2')),
      ours({ limit: 1, key: agent }, ips('203.0.113.1', '203.0.113.2')),
      { peer: '200, 429', ours: '400, 400' },
      '[gets 400]',
    ),
    differs(
      peer({ limit: 1, keyGenerator: (req) => agent(req) as string }, ips('203.0.113.1', '203.0.113.2')),
      ours({ limit: 1, key: byUser(agent), anonymous: 'by-ip' }, ips('203.0.113.1', '203.0.113.2')),
      { peer: '200, 429', ours: '200, 200' },
      'or follows `anonymous`',
    ),
  ],
  'Redis fails': differs(
    async () => ask(serve(peerOf({ store: peerStore(await awayRedis()) }))),
    async () => ask(serve(oursOf({ store: storeOn(await awayRedis(), AWAY) }))),
    { peer: '500, 500, 500', ours: '200, 200, 429' },
    'each process decides by itself',
  ),
  'body of a refusal': [
    differs(
      peer({ limit: 0 }, times(1), fields('content-type')),
      ours({ limit: 0 }, times(1), fields('content-type')),
      {
        peer: '429 content-type=text/html; charset=utf-8',
        ours: '429 content-type=application/problem+json; charset=utf-8',
      },
      'problem details (JSON)',
    ),
    differs(
      peer({ limit: 0 }, [{ headers: TEXT }], fields('content-type')),
      ours({ limit: 0 }, [{ headers: TEXT }], fields('content-type')),
      { peer: '429 content-type=text/html; charset=utf-8', ours: '429 content-type=text/plain; charset=utf-8' },
      'or text for clients that prefer it',
    ),
  ],
  'existing counts': differs(
    async () => {
      const client = await redis()
      await ask(serve(peerOf({ store: peerStore(client) })))
      return `${await ask(serve(peerOf({ store: peerStore(client) })), times(1))}: ${await client.keys('rl:*')}`
    },
    async () => {
      const client = await redis()
      await ask(serve(peerOf({ store: peerStore(client) })))
      return ask(serve(oursOf({ store: storeOn(client) })), times(1))
    },
    { peer: '429: rl:203.0.113.9', ours: '200' },
    'clients start afresh',
  ),

  // Options
  '`windowMs`': [
    same(
      peer({ windowMs: 90_000, legacyHeaders: true }, times(3), fields('retry-after')),
      ours({ window: 90_000 }, times(3), fields('retry-after')),
      '200 retry-after=-, 200 retry-after=-, 429 retry-after=90',
    ),
    same(
      peer({ windowMs: 60_000, legacyHeaders: true }, times(3), fields('retry-after')),
      ours({ window: '1m' }, times(3), fields('retry-after')),
      '200 retry-after=-, 200 retry-after=-, 429 retry-after=60',
    ),
  ],
  '`limit`, `max`': [
    same(peer({ limit: 1 }), ours({ limit: 1 }), '200, 429, 429'),
    same(
      peer({ limit: async (req) => (agent(req) ? 2 : 1) }, users('ann', 'ann', 'ann')),
      ours({ limit: async (req: Request) => (agent(req) ? 2 : 1) }, users('ann', 'ann', 'ann')),
      '200, 200, 429',
    ),
    same(peer({ limit: 0 }), ours({ limit: 0 }), '429, 429, 429'),
    same(peer({ limit: undefined, max: 1 }), ours({ limit: 1 }), '200, 429, 429'),
  ],
  '`message`': [
    same(
      peer({ limit: 0, message: 'Slow down.' }, times(1), body),
      ours({ limit: 0, respond: reject({ body: 'Slow down.' }) }, times(1), body),
      '429 Slow down.',
    ),
    same(
      peer({ limit: 0, message: { error: 'slow' } }, times(1), body),
      ours({ limit: 0, respond: reject({ body: { error: 'slow' } }) }, times(1), body),
      '429 {"error":"slow"}',
    ),
    same(
      peer({ limit: 0, message: (req: Request) => ({ path: req.path }) }, paths('/'), body),
      ours({ limit: 0, respond: reject({ body: (req: Request) => ({ path: req.path }) }) }, paths('/'), body),
      '429 {"path":"/"}',
    ),
  ],
  '`statusCode`': [
    same(peer({ statusCode: 503 }), ours({ respond: reject({ status: 503 }) }), '200, 200, 503'),
    same(
      peer({ statusCode: 420 }),
      ours({ respond: handler((_req, res) => void res.sendStatus(420)) }),
      '200, 200, 420',
    ),
  ],
  '`handler`': [
    same(
      peer({ limit: 0, handler: (req, res) => void res.status(420).send(`not ${req.path}`) }, times(1), body),
      ours({ limit: 0, respond: handler((req, res) => void res.status(420).send(`not ${req.path}`)) }, times(1), body),
      '420 not /',
    ),
    differs(
      peer(
        { limit: 0, handler: (_req, _res, next) => next(Object.assign(new Error('much'), { status: 429 })) },
        times(1),
        body,
      ),
      ours({ limit: 0, respond: pass() }, times(1), body),
      { peer: '429 handled Error', ours: '429 handled RateLimitError' },
      '`respond: pass()` for the error handler',
    ),
    same(
      async () => {
        const noticed: string[] = []
        const limiter = peerOf({
          limit: 1,
          handler(req, res, _next, { statusCode }) {
            noticed.push(req.path)
            res.sendStatus(statusCode)
          },
        })
        return `${await ask(serve(limiter))}: ${noticed}`
      },
      async () => {
        const noticed: string[] = []
        const limiter = rateLimit({
          limit: 1,
          window: '1m',
          onVerdict(req: Request, { allowed }) {
            if (!allowed) noticed.push(req.path)
          },
        })
        return `${await ask(serve(limiter))}: ${noticed}`
      },
      '200, 429, 429: /,/',
    ),
  ],
  '`legacyHeaders`, `headers`': [
    same(
      peer({ legacyHeaders: true }, times(3), quota('x-ratelimit')),
      ours({ headers: 'legacy' }, times(3), quota('x-ratelimit')),
      [2, 2, 2]
        .map(
          (limit, n) =>
            `${n < 2 ? 200 : 429} x-ratelimit-limit=${limit} x-ratelimit-remaining=${[1, 0, 0][n]} x-ratelimit-reset=1767225660`,
        )
        .join(', '),
    ),
    differs(
      () => ask(serve(peerLimit({ limit: 2 })), times(1), fields('x-ratelimit-limit', 'ratelimit')),
      ours({}, times(1), fields('x-ratelimit-limit', 'ratelimit')),
      { peer: '200 x-ratelimit-limit=2 ratelimit=-', ours: '200 x-ratelimit-limit=- ratelimit="default";r=1;t=60' },
      'express-rate-limit sends these fields by default, Sluice does not',
    ),
  ],
  '`standardHeaders`': [
    ...[true, 'draft-6' as const].map((standardHeaders) =>
      same(
        peer(
          { standardHeaders },
          times(3),
          fields('ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after'),
        ),
        ours(
          { headers: 'draft-6' },
          times(3),
          fields('ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after'),
        ),
        [1, 0, 0]
          .map(
            (left, n) =>
              `${n < 2 ? 200 : 429} ratelimit-policy=2;w=60 ratelimit-limit=2 ratelimit-remaining=${left} ratelimit-reset=60 retry-after=${n < 2 ? '-' : 60}`,
          )
          .join(', '),
      ),
    ),
    same(
      peer({ standardHeaders: 'draft-7' }, times(1), fields('ratelimit-policy', 'ratelimit')),
      ours({ headers: 'draft-7' }, times(1), fields('ratelimit-policy', 'ratelimit')),
      '200 ratelimit-policy=2;w=60 ratelimit=limit=2, remaining=1, reset=60',
    ),
    differs(
      peer({ standardHeaders: 'draft-8' }, times(1), fields('ratelimit-policy', 'ratelimit')),
      ours({ headers: 'draft-8' }, times(1), fields('ratelimit-policy', 'ratelimit')),
      {
        peer: expect.stringMatching(
          /^200 ratelimit-policy="2-in-1min"; q=2; w=60; pk=:\w+=*: ratelimit="2-in-1min"; r=1; t=60$/,
        ),
        ours: '200 ratelimit-policy="default";q=2;w=60 ratelimit="default";r=1;t=60',
      },
      'The fields of draft 8 have no `pk`',
    ),
    differs(
      peer({ standardHeaders: 'draft-8', legacyHeaders: true }, times(1), fields('ratelimit', 'x-ratelimit-remaining')),
      ours({ headers: ['draft-8', 'legacy'] }, times(1), fields('ratelimit', 'x-ratelimit-remaining')),
      {
        peer: '200 ratelimit="2-in-1min"; r=1; t=60 x-ratelimit-remaining=1',
        ours: '200 ratelimit="default";r=1;t=60 x-ratelimit-remaining=1',
      },
      '`name`, of the policy or of a limit',
    ),
  ],
  '`identifier`': differs(
    peer({ standardHeaders: 'draft-8', identifier: 'api' }, times(1), fields('ratelimit')),
    ours({ headers: 'draft-8', name: 'api' }, times(1), fields('ratelimit')),
    { peer: '200 ratelimit="api"; r=1; t=60', ours: '200 ratelimit="api";r=1;t=60' },
    '`name`, of the policy or of a limit',
  ),
  '`retryAfter`': differs(
    peer({ legacyHeaders: true, retryAfter: 5 } as Partial<Options>, times(3), fields('retry-after')),
    ours({}, times(3), fields('retry-after')),
    {
      peer: '200 retry-after=-, 200 retry-after=-, 429 retry-after=5',
      ours: '200 retry-after=-, 200 retry-after=-, 429 retry-after=60',
    },
    'a refusal always has an exact `Retry-After`',
  ),
  '`requestPropertyName`': same(
    () =>
      ask(
        serve(peerOf({ requestPropertyName: 'quota' }), (req) => property(req, 'quota').remaining),
        times(1),
        body,
      ),
    () =>
      ask(
        serve(oursOf({ requestProperty: 'quota' }), (req) => property(req, 'quota').remaining),
        times(1),
        body,
      ),
    '200 1',
  ),
  '`skipFailedRequests`': same(
    peer({ skipFailedRequests: true }, paths('/404', '/500', '/404', '/', '/', '/')),
    ours({ count: { only: 'success' } }, paths('/404', '/500', '/404', '/', '/', '/')),
    '404, 500, 404, 200, 200, 429',
  ),
  '`skipSuccessfulRequests`': [
    same(
      peer({ skipSuccessfulRequests: true }, paths('/', '/', '/', '/401', '/404', '/')),
      ours({ count: { only: 'failure' } }, paths('/', '/', '/', '/401', '/404', '/')),
      '200, 200, 200, 401, 404, 429',
    ),
    differs(
      peer({ skipSuccessfulRequests: true }, paths('/500', '/500', '/')),
      ours({ count: { only: 'failure' } }, paths('/500', '/500', '/')),
      { peer: '500, 500, 429', ours: '500, 500, 200' },
      '4xx except 429 count',
    ),
    same(
      peer({ skipSuccessfulRequests: true }, paths('/500', '/500', '/')),
      ours({ count: { only: (status: number) => status >= 400 } }, paths('/500', '/500', '/')),
      '500, 500, 429',
    ),
  ],
  '`requestWasSuccessful`': same(
    peer(
      { skipSuccessfulRequests: true, requestWasSuccessful: (_req, res) => res.statusCode !== 404 },
      paths('/401', '/401', '/401', '/404', '/404', '/'),
    ),
    ours({ count: { only: (status: number) => status === 404 } }, paths('/401', '/401', '/401', '/404', '/404', '/')),
    '401, 401, 401, 404, 404, 429',
  ),
  '`keyGenerator`': [
    same(
      peer({ limit: 1, keyGenerator: (req) => String(agent(req)) }, users('ann', 'bob', 'ann')),
      ours({ limit: 1, key: byHeader('user') }, users('ann', 'bob', 'ann')),
      '200, 200, 429',
    ),
    same(
      peer({ limit: 1, keyGenerator: async (req) => String(agent(req)) }, users('ann', 'bob', 'ann')),
      ours({ limit: 1, key: async (req: Request) => agent(req) }, users('ann', 'bob', 'ann')),
      '200, 200, 429',
    ),
    same(
      peer(
        { limit: 1, keyGenerator: (req) => agent(req) ?? ipKeyGenerator(String(req.ip)) },
        users('ann', '', 'ann', ''),
      ),
      ours({ limit: 1, key: byUser(agent), anonymous: 'by-ip' }, users('ann', '', 'ann', '')),
      '200, 200, 429, 429',
    ),
  ],
  '`ipv6Subnet`': same(
    peer({ limit: 1, ipv6Subnet: 48 }, twoNetworks),
    ours({ limit: 1, key: byIp({ ipv6Prefix: 48 }) }, twoNetworks),
    '200, 429',
  ),
  '`skip`': same(
    peer({ limit: 1, skip: (req) => req.path === '/204' }, paths('/204', '/204', '/', '/')),
    ours({ limit: 1, skip: (req: Request) => req.path === '/204' }, paths('/204', '/204', '/', '/')),
    '204, 204, 200, 429',
  ),
  '`store`': [
    same(peer({ store: new MemoryStore() }), ours({ store: memoryStore() }), '200, 200, 429'),
    same(
      async () => {
        const client = await redis()
        return [
          await ask(serve(peerOf({ store: peerStore(client) })), times(2)),
          await ask(serve(peerOf({ store: peerStore(client) })), times(1)),
        ].join(', ')
      },
      async () => {
        const client = await redis()
        return [
          await ask(serve(oursOf({ name: 'api', store: storeOn(client) })), times(2)),
          await ask(serve(oursOf({ name: 'api', store: storeOn(client) })), times(1)),
        ].join(', ')
      },
      '200, 200, 429',
    ),
  ],
  '`passOnStoreError`': [
    same(
      async () => ask(serve(peerOf({ store: peerStore(await awayRedis()), passOnStoreError: true }))),
      async () => ask(serve(oursOf({ store: storeOn(await awayRedis(), AWAY), unavailable: { decide: 'allow' } }))),
      '200, 200, 200',
    ),
    differs(
      async () => ask(serve(peerOf({ store: peerStore(await awayRedis()) }))),
      async () => ask(serve(oursOf({ store: storeOn(await awayRedis(), AWAY), unavailable: { decide: 'deny' } }))),
      { peer: '500, 500, 500', ours: '503, 503, 503' },
      'To refuse with 503',
    ),
  ],
  '`validate`': differs(
    () => ask(serve(peerLimit({ validate: false, limit: 2, windowsMs: 5 } as Partial<Options>)), times(1)),
    () => errorOf(() => rateLimit({ limit: 2, window: '1m', windows: 5 } as never)),
    { peer: '200', ours: expect.stringContaining('windows') },
    'options are always checked',
  ),
  '`logger`': untried('a warning of the process comes once in it; test/http/open-proxy.test.ts tries them'),
  '`onLimitReached` (removed in 7)': untried(
    'express-rate-limit 8 has no such option; `onVerdict` is tried under `handler`',
  ),
  '`draft_polli_ratelimit_headers` (removed in 7)': untried(
    'express-rate-limit 8 has no such option; `draft-6` is tried under `standardHeaders`',
  ),

  // rate-limit-redis
  '`sendCommand`, `sendCommandCluster`': untried('tried under `store`; test/redis/cluster tries clusters'),
  '`prefix`': same(
    async () => {
      const client = await redis()
      await ask(serve(peerOf({ store: peerStore(client, 'api:') })), times(1))
      return (await client.keys('*')).every((key) => key.startsWith('api:'))
    },
    async () => {
      const client = await redis()
      await ask(serve(oursOf({ store: storeOn(client, { prefix: 'api:', timeout: 5000 }) })), times(1))
      return (await client.keys('*')).every((key) => key.startsWith('api:'))
    },
    true,
  ),
  '`resetExpiryOnChange` (removed in 4)': untried('rate-limit-redis 6 has no such option'),

  // express-slow-down
  '`delayAfter`': same(
    slowed({ delayAfter: 2, delayMs: (used) => (used - 2) * 23 }, 4),
    delayed({ from: 2, by: 23 }, 4),
    '23,46',
  ),
  '`delayMs`': differs(
    slowed({ delayAfter: 1, delayMs: 23 }, 3),
    delayed({ from: 1, by: 23 }, 3),
    { peer: '23,23', ours: '23,46' },
    'A number delays each request by the same time',
  ),
  '`maxDelayMs`': same(
    slowed({ delayAfter: 1, delayMs: (used) => (used - 1) * 23, maxDelayMs: 37 }, 4),
    delayed({ from: 1, by: 23, max: 37 }, 4),
    '23,37,37',
  ),

  // Methods and properties
  '`limiter.resetKey(ip)`': same(
    async () => {
      const limiter = peerOf({ limit: 1 })
      const before = await ask(serve(limiter), times(2))
      await limiter.resetKey('203.0.113.9')
      return `${before}, ${await ask(serve(limiter), times(1))}`
    },
    async () => {
      const limited = oursOf({ limit: 1 })
      const before = await ask(serve(limited), times(2))
      await limited.limiter.reset({ ip: '203.0.113.9' })
      return `${before}, ${await ask(serve(limited), times(1))}`
    },
    '200, 429, 200',
  ),
  '`limiter.getKey(ip)`': same(
    async () => {
      const limiter = peerOf({})
      await ask(serve(limiter), times(1))
      return (await limiter.getKey('203.0.113.9'))?.totalHits
    },
    async () => {
      const limited = oursOf({})
      await ask(serve(limited), times(1))
      return 2 - (await limited.limiter.peek({ ip: '203.0.113.9' })).remaining
    },
    1,
  ),
  '`req.rateLimit.limit`, `.remaining`': same(
    peerRead(({ limit, remaining }) => [limit, remaining]),
    oursRead(({ limits, remaining }) => [limits[0]?.limit, remaining]),
    '200 [2,1]',
  ),
  '`req.rateLimit.used`': same(
    peerRead(({ used }) => used),
    oursRead(({ limits, remaining }) => (limits[0]?.limit ?? 0) - remaining),
    '200 1',
  ),
  '`req.rateLimit.resetTime`': same(
    peerRead(({ resetTime }) => resetTime),
    oursRead(({ resetAfterMs }) => new Date(Date.now() + resetAfterMs)),
    '200 "2026-01-01T00:01:00.000Z"',
  ),
  '`req.rateLimit.key`': differs(
    peerRead(({ key }) => key),
    oursRead(({ keys }) => keys[0]),
    { peer: '200 "203.0.113.9"', ours: '200 {"kind":"ip","value":"203.0.113.9"}' },
    '`{ kind, value }`',
  ),
  '`ipKeyGenerator(ip)`': same(
    peer({ limit: 1, keyGenerator: (req) => `${ipKeyGenerator(String(req.ip), 64)} ${agent(req)}` }, [
      { ip: '2001:db8::1', headers: { user: 'ann' } },
      { ip: '2001:db8::2', headers: { user: 'ann' } },
      { ip: '2001:db8::2', headers: { user: 'bob' } },
    ]),
    ours({ limit: 1, key: compose(byIp(), byHeader('user')) }, [
      { ip: '2001:db8::1', headers: { user: 'ann' } },
      { ip: '2001:db8::2', headers: { user: 'ann' } },
      { ip: '2001:db8::2', headers: { user: 'bob' } },
    ]),
    '200, 429, 200',
  ),
  '`MemoryStore`': untried('tried under `store`'),
  'stores for Memcached, MongoDB, PostgreSQL …': untried('there is no such store'),
}
