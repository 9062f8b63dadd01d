import { createRequire } from 'node:module'
import {
  byHeader,
  byIp,
  byRoute,
  byUser,
  compose,
  createLimiter,
  fixedWindow,
  handler,
  ipRanges,
  keyed,
  memoryStore,
  pass,
  rateLimit,
  type Verdict,
} from '@sluice/fastify'
import makeFastify, {
  type FastifyInstance,
  type FastifyRequest,
  type onRequestHookHandler,
  type preHandlerHookHandler,
} from 'fastify'
import { expect } from 'vitest'
import { AWAY, awayRedis, onEnd, passMs, redis, storeOn } from './environment.js'
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
  status,
  times,
  untried,
  users,
} from './row.js'

// Its types would clash with those of this plugin, which are in the same program.
const peerPlugin = createRequire(import.meta.url)('@fastify/rate-limit')

type Setup = (app: FastifyInstance) => unknown
type Register = (app: FastifyInstance) => Promise<unknown>

/** An app behind a proxy, whose paths are statuses. */
async function serve(register: Register, setup: Setup = () => {}) {
  const app = makeFastify({ trustProxy: 'loopback' })
  onEnd(() => app.close())
  await register(app)
  await setup(app)
  if (!app.hasRoute({ method: 'GET', url: '/' })) app.get('/', async () => 'ok')
  app.get('/:status', async (request, reply) =>
    reply.code(Number((request.params as { status: string }).status)).send(),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

const peerOf =
  (options: object = {}): Register =>
  (app) =>
    Promise.resolve(app.register(peerPlugin, { max: 2, timeWindow: 60_000, ...options }))
const oursOf =
  (options: object = {}): Register =>
  (app) =>
    Promise.resolve(app.register(rateLimit, { limit: 2, window: '1m', ...options }))

const peer =
  (options: object, sent?: readonly Sent[], show?: Show, setup?: Setup): Look =>
  async () =>
    ask(await serve(peerOf(options), setup), sent, show)
const ours =
  (options: object, sent?: readonly Sent[], show?: Show, setup?: Setup): Look =>
  async () =>
    ask(await serve(oursOf(options), setup), sent, show)

/** A route with a configuration of its own, beside that of `/`. */
const route =
  (rateLimit: object | false, path = '/own'): Setup =>
  (app) =>
    app.get(path, { config: { rateLimit } as never }, async () => 'own')

/** The statuses of a request, after so many ms of another, and so on. */
const after =
  (register: Register, ...waits: readonly number[]): Look =>
  async () => {
    const server = await serve(register)
    const seen = [await ask(server, times(1))]
    for (const ms of waits) {
      passMs(ms)
      seen.push(await ask(server, times(1)))
    }
    return seen.join(', ')
  }

/** What a function that limiters call for a request has noticed. */
const noticed =
  (run: (note: (value: unknown) => void) => Promise<unknown>): Look =>
  async () => {
    const notes: unknown[] = []
    await run((value) => notes.push(value))
    return notes
  }

const agent = (request: FastifyRequest) => request.headers.user as string | undefined
const isEmpty = (request: FastifyRequest) => request.url === '/204'
const LEGACY = fields('x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after')
const DRAFT = fields('ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset')
const twoNetworks = ips('2001:db8::1', '2001:db8:0:1::1')
const BAN = { after: 2, within: '1m', for: ['1h'] } as const

const NO_RESET = { 'x-ratelimit-reset': false }
const NO_HEADERS = { 'x-ratelimit-limit': false, 'x-ratelimit-remaining': false, 'x-ratelimit-reset': false }

interface Result {
  readonly isExceeded: boolean
  readonly max: number
  readonly timeWindow: number
  readonly remaining: number
  readonly ttl: number
  readonly ttlInSeconds: number
}
type Check = (request: FastifyRequest, options?: object) => Promise<Result>

/** The result of the last of so many calls in a handler. */
const peerResult =
  (of: (result: Result) => unknown, calls = 1, options = {}): Look =>
  async () => {
    let seen: unknown
    const setup: Setup = (app) => {
      const check = (app as never as { createRateLimit(options: object): Check }).createRateLimit({ max: 2 })
      app.get('/', async (request) => {
        seen = of(await check(request, options))
        return 'ok'
      })
    }
    await ask(await serve(peerOf({ global: false }), setup), times(calls))
    return seen
  }
const ourResult =
  (of: (verdict: Verdict) => unknown, calls = 1): Look =>
  async () => {
    const limiter = createLimiter({ limit: 2, window: '1m' })
    let verdict: Verdict | undefined
    for (let n = 0; n < calls; n++) verdict = await limiter.consume('ann')
    return of(verdict as Verdict)
  }

const other: Setup = (app) => app.get('/own', async () => 'own')

const of = (user: string, ...all: string[]): Sent[] => all.map((path) => ({ path, headers: { user } }))

const handled: Setup = (app) =>
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) =>
    reply.code(error.statusCode ?? 500).send(`handled ${error.statusCode}`),
  )

type Decorated = { rateLimit(options: object): preHandlerHookHandler }

const notFound =
  (options: object): Setup =>
  (app) =>
    app.setNotFoundHandler(
      { preHandler: (app as never as Decorated).rateLimit(options) },
      (_request, reply) => void reply.code(404).send(),
    )

/** A route with a limiter as its own hook. */
const hooked =
  (options: object): Setup =>
  (app) =>
    app.get(
      '/own',
      { onRequest: (app as never as Decorated).rateLimit(options) as onRequestHookHandler },
      async () => 'own',
    )

/** In what order hooks of the app and the key of the limiter run. */
const order =
  (register: (note: () => string) => Register): Look =>
  async () => {
    const ran: string[] = []
    const note = (name: string) => async () => void ran.push(name)
    const setup: Setup = (app) => {
      app.addHook('onRequest', note('onRequest'))
      app.addHook('preParsing', note('preParsing'))
      app.addHook('preValidation', note('preValidation'))
      app.addHook('preHandler', note('preHandler'))
    }
    const limit = register(() => {
      ran.push('limit')
      return 'everyone'
    })
    await ask(await serve(limit, setup), times(1))
    return ran.join(' ')
  }

export const ROWS: Rows = {
  // Differences
  algorithm: [
    differs(
      after(peerOf(), 59_000, 2000, 0),
      after(oursOf(), 59_000, 2000, 0),
      { peer: '200, 200, 200, 200', ours: '200, 200, 200, 429' },
      'Up to twice the limit can pass in a window',
    ),
    same(
      after(peerOf(), 59_000, 2000, 0),
      after(
        oursOf({
          limit: undefined,
          window: undefined,
          limits: [fixedWindow({ limit: 2, window: '1m', anchor: 'first-request' })],
        }),
        59_000,
        2000,
        0,
      ),
      '200, 200, 200, 200',
    ),
  ],
  'refused requests': differs(
    peer({ ban: 1 }, times(5)),
    ours({}, times(5)),
    { peer: '200, 200, 429, 403, 403', ours: '200, 200, 429, 429, 429' },
    'do not count',
  ),
  'default limit': differs(
    async () => ask(await serve((app) => Promise.resolve(app.register(peerPlugin))), times(1), LEGACY),
    () => errorOf(() => serve((app) => Promise.resolve(app.register(rateLimit, {} as never)))),
    {
      peer: '200 x-ratelimit-limit=1000 x-ratelimit-remaining=999 x-ratelimit-reset=60 retry-after=-',
      ours: 'policy "default": limit: expected a limit and a window, or limits, got undefined',
    },
    'a limit is required',
  ),
  'routes without a limit of their own': [
    same(
      peer({ max: 1 }, paths('/', '/own', '/own'), status, other),
      ours({ limit: 1 }, paths('/', '/own', '/own'), status, other),
      '200, 429, 429',
    ),
    differs(
      peer({ max: 1 }, paths('/', '/own', '/own'), status, other),
      ours({ limit: 1, key: compose(byIp(), byRoute()) }, paths('/', '/own', '/own'), status, other),
      { peer: '200, 429, 429', ours: '200, 200, 429' },
      'For one count per route',
    ),
    differs(
      peer({ max: 1, keyGenerator: agent }, of('ann', '/', '/own', '/own'), status, other),
      ours(
        { limit: 1, key: compose(keyed('client', agent), byRoute()) },
        of('ann', '/', '/own', '/own'),
        status,
        other,
      ),
      { peer: '200, 429, 429', ours: '200, 200, 429' },
      'With a `keyGenerator` `fn`',
    ),
  ],
  "a route's own limit": [
    same(
      peer({ max: 3 }, paths('/own', '/own', '/', '/', '/', '/'), status, route({ max: 1 })),
      ours({ limit: 3 }, paths('/own', '/own', '/', '/', '/', '/'), status, route({ limit: 1 })),
      '200, 429, 200, 200, 200, 429',
    ),
    differs(
      peer({ ban: 1 }, paths('/own', '/own', '/own', '/own'), status, route({ max: 1 })),
      ours({ ban: BAN }, paths('/own', '/own', '/own', '/own'), fields('retry-after'), route({ limit: 1 })),
      {
        peer: '200, 429, 403, 403',
        ours: '200 retry-after=-, 429 retry-after=60, 429 retry-after=3600, 429 retry-after=3600',
      },
      "The plugin's `ban` and `onDeny` apply, too",
    ),
  ],
  'unknown paths (404)': [
    differs(
      peer({ max: 1 }, paths('/no/such', '/no/such')),
      ours({ limit: 1 }, paths('/no/such', '/no/such')),
      { peer: '404, 404', ours: '404, 429' },
      'limited by the plugin',
    ),
    differs(
      peer({ max: 9 }, paths('/no/such', '/no/such'), status, notFound({ max: 1 })),
      ours({ limit: 9 }, paths('/no/such', '/no/such'), status, notFound({ limit: 1, window: '1m' })),
      { peer: '404, 429', ours: '404, 429' },
      'For a second limit',
    ),
  ],
  'a refusal': [
    differs(
      peer({ max: 0 }, times(1), body, handled),
      ours({ limit: 0 }, times(1), body, handled),
      { peer: '429 handled 429', ours: expect.stringMatching(/^429 {"type":/) },
      'a response of the limiter',
    ),
    same(
      peer({ max: 0 }, times(1), body, handled),
      ours({ limit: 0, respond: pass() }, times(1), body, handled),
      '429 handled 429',
    ),
  ],
  'Redis fails': differs(
    async () => ask(await serve(peerOf({ redis: await awayRedis() }))),
    async () => ask(await serve(oursOf({ store: storeOn(await awayRedis(), AWAY) }))),
    { peer: '500, 500, 500', ours: '200, 200, 429' },
    'each process decides by itself',
  ),
  memory: differs(
    peer({ max: 1, cache: 2 }, ips('203.0.113.1', '203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.1')),
    ours(
      { limit: 1, store: memoryStore({ maxKeys: 2 }) },
      ips('203.0.113.1', '203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.1'),
    ),
    { peer: '200, 429, 200, 200, 200', ours: '200, 429, 200, 200, 429' },
    'Refused clients are forgotten last',
  ),
  'existing counts': differs(
    async () => {
      const client = await redis()
      await ask(await serve(peerOf({ redis: client })))
      return `${await ask(await serve(peerOf({ redis: client })), times(1))}: ${await client.keys('*')}`
    },
    async () => {
      const client = await redis()
      await ask(await serve(peerOf({ redis: client })))
      return ask(await serve(oursOf({ store: storeOn(client) })), times(1))
    },
    { peer: '429: fastify-rate-limit-203.0.113.9', ours: '200' },
    'clients start afresh',
  ),

  // Options
  '`global`': same(
    peer({ global: false, max: 1 }, paths('/', '/', '/own', '/own'), status, route({ max: 1 })),
    ours({ global: false }, paths('/', '/', '/own', '/own'), status, route({ limit: 1 })),
    '200, 200, 200, 429',
  ),
  '`max`': [
    same(peer({ max: 1 }), ours({ limit: 1 }), '200, 429, 429'),
    same(
      peer({ max: async (request: FastifyRequest) => (agent(request) ? 2 : 1) }, users('ann', 'ann', 'ann')),
      ours({ limit: async (request: FastifyRequest) => (agent(request) ? 2 : 1) }, users('ann', 'ann', 'ann')),
      '200, 200, 429',
    ),
  ],
  '`timeWindow`': [
    same(
      after(peerOf({ max: 1, timeWindow: 90_000 }), 89_000, 2000),
      after(oursOf({ limit: 1, window: 90_000 }), 89_000, 2000),
      '200, 429, 200',
    ),
    same(
      after(peerOf({ max: 1, timeWindow: '1 minute' }), 59_000, 2000),
      after(oursOf({ limit: 1, window: '1m' }), 59_000, 2000),
      '200, 429, 200',
    ),
    same(
      after(peerOf({ max: 1, timeWindow: () => 90_000 }), 89_000, 2000),
      after(oursOf({ limit: 1, window: () => 90_000 }), 89_000, 2000),
      '200, 429, 200',
    ),
  ],
  '`ban`': differs(
    peer({ max: 1, ban: 2 }, times(5)),
    ours({ limit: 1, ban: BAN }, times(5), fields('retry-after')),
    {
      peer: '200, 429, 429, 403, 403',
      ours: '200 retry-after=-, 429 retry-after=60, 429 retry-after=3600, 429 retry-after=3600, 429 retry-after=3600',
    },
    'A banned client gets 429',
  ),
  '`onBanReach`': differs(
    noticed(async (note) => ask(await serve(peerOf({ max: 1, ban: 2, onBanReach: () => note('banned') })), times(5))),
    noticed(async (note) =>
      ask(
        await serve(
          oursOf({
            limit: 1,
            ban: BAN,
            onVerdict: (_request: FastifyRequest, { reason }: Verdict) => reason === 'banned' && note(reason),
          }),
        ),
        times(5),
      ),
    ),
    { peer: ['banned', 'banned'], ours: ['banned', 'banned', 'banned'] },
    "check `verdict.reason === 'banned'`",
  ),
  '`hook`': [
    differs(
      order((note) => peerOf({ hook: 'onRequest', keyGenerator: note })),
      order((note) => oursOf({ hook: 'onRequest', key: note })),
      {
        peer: 'onRequest limit preParsing preValidation preHandler',
        ours: 'limit onRequest preParsing preValidation preHandler',
      },
      'they run before the hooks that are added after the plugin',
    ),
    differs(
      order((note) => peerOf({ hook: 'preParsing', keyGenerator: note })),
      order((note) => oursOf({ hook: 'preParsing', key: note })),
      {
        peer: 'onRequest preParsing limit preValidation preHandler',
        ours: 'onRequest limit preParsing preValidation preHandler',
      },
      'they run before the hooks that are added after the plugin',
    ),
    same(
      order((note) => peerOf({ hook: 'preValidation', keyGenerator: note })),
      order((note) => oursOf({ hook: 'preValidation', key: note })),
      'onRequest preParsing preValidation limit preHandler',
    ),
    same(
      order((note) => peerOf({ hook: 'preHandler', keyGenerator: note })),
      order((note) => oursOf({ hook: 'preHandler', key: note })),
      'onRequest preParsing preValidation preHandler limit',
    ),
  ],
  '`cache`': untried('tried under `memory`'),
  '`store`': untried('a store of its own is one of bridges.md, which test/bridges tries'),
  '`redis`': same(
    async () => {
      const client = await redis()
      return [
        await ask(await serve(peerOf({ redis: client })), times(2)),
        await ask(await serve(peerOf({ redis: client })), times(1)),
      ].join(', ')
    },
    async () => {
      const client = await redis()
      return [
        await ask(await serve(oursOf({ store: storeOn(client) })), times(2)),
        await ask(await serve(oursOf({ store: storeOn(client) })), times(1)),
      ].join(', ')
    },
    '200, 200, 429',
  ),
  '`nameSpace`': same(
    async () => {
      const client = await redis()
      await ask(await serve(peerOf({ redis: client, nameSpace: 'api:' })), times(1))
      return (await client.keys('*')).every((key) => key.startsWith('api:'))
    },
    async () => {
      const client = await redis()
      await ask(await serve(oursOf({ store: storeOn(client, { prefix: 'api:', timeout: 5000 }) })), times(1))
      return (await client.keys('*')).every((key) => key.startsWith('api:'))
    },
    true,
  ),
  '`allowList`': [
    same(
      peer({ max: 1, allowList: ['203.0.113.7'] }, ips('203.0.113.7', '203.0.113.7', '203.0.113.8', '203.0.113.8')),
      ours(
        { limit: 1, allow: ipRanges(['203.0.113.7']) },
        ips('203.0.113.7', '203.0.113.7', '203.0.113.8', '203.0.113.8'),
      ),
      '200, 200, 200, 429',
    ),
    same(
      peer({ max: 1, allowList: isEmpty }, paths('/204', '/204', '/', '/')),
      ours({ limit: 1, allow: isEmpty }, paths('/204', '/204', '/', '/')),
      '204, 204, 200, 429',
    ),
    same(
      peer({ max: 1, allowList: async (request: FastifyRequest) => isEmpty(request) }, paths('/204', '/204', '/', '/')),
      ours({ limit: 1, skip: async (request: FastifyRequest) => isEmpty(request) }, paths('/204', '/204', '/', '/')),
      '204, 204, 200, 429',
    ),
  ],
  '`continueExceeding`': same(
    after(peerOf({ max: 1, continueExceeding: true }), 40_000, 40_000, 61_000),
    after(oursOf({ limit: 1, onDeny: 'charge' }), 40_000, 40_000, 61_000),
    '200, 429, 429, 200',
  ),
  '`exponentialBackoff`': untried('the growth of bans is that of bans.md, which test/http/bans.contract.ts tries'),
  '`skipOnError`': same(
    async () => ask(await serve(peerOf({ redis: await awayRedis(), skipOnError: true }))),
    async () => ask(await serve(oursOf({ store: storeOn(await awayRedis(), AWAY), unavailable: { decide: 'allow' } }))),
    '200, 200, 200',
  ),
  '`keyGenerator`': [
    same(
      peer({ max: 1, keyGenerator: agent }, users('ann', 'bob', 'ann')),
      ours({ limit: 1, key: byHeader('user') }, users('ann', 'bob', 'ann')),
      '200, 200, 429',
    ),
    same(
      peer({ max: 1, keyGenerator: async (request: FastifyRequest) => agent(request) }, users('ann', 'bob', 'ann')),
      ours({ limit: 1, key: async (request: FastifyRequest) => agent(request) }, users('ann', 'bob', 'ann')),
      '200, 200, 429',
    ),
    same(
      peer(
        { max: 1, keyGenerator: (request: FastifyRequest) => agent(request) ?? request.ip },
        users('ann', '', 'ann', ''),
      ),
      ours({ limit: 1, key: byUser(agent), anonymous: 'by-ip' }, users('ann', '', 'ann', '')),
      '200, 200, 429, 429',
    ),
  ],
  '`ipv6Subnet`': [
    same(peer({ max: 1 }, twoNetworks), ours({ limit: 1 }, twoNetworks), '200, 200'),
    same(
      peer({ max: 1, ipv6Subnet: 48 }, twoNetworks),
      ours({ limit: 1, key: byIp({ ipv6Prefix: 48 }) }, twoNetworks),
      '200, 429',
    ),
  ],
  '`groupId`': differs(
    peer({ max: 9 }, paths('/one', '/two', '/one'), status, (app) => {
      route({ max: 2, groupId: 'both' }, '/one')(app)
      route({ max: 2, groupId: 'both' }, '/two')(app)
    }),
    ours({ limit: 9 }, paths('/one', '/two', '/one'), status, (app) => {
      route({ limit: 2, group: 'both' }, '/one')(app)
      route({ group: 'both' }, '/two')(app)
    }),
    { peer: '200, 200, 200', ours: '200, 200, 429' },
    'each route with a `groupId` in its `config` still counts by itself',
  ),
  '`errorResponseBuilder`': same(
    peer(
      {
        max: 1,
        errorResponseBuilder: (_request: FastifyRequest, { max, ttl, ban }: Record<string, unknown>) => ({
          statusCode: 429,
          max,
          ttl,
          ban,
        }),
      },
      times(2),
      body,
    ),
    ours(
      {
        limit: 1,
        respond: handler((_request, reply, { limits, retryAfterMs, reason }) => {
          reply.code(429)
          return { statusCode: 429, max: limits[0]?.limit, ttl: retryAfterMs, ban: reason === 'banned' }
        }),
      },
      times(2),
      body,
    ),
    '200 ok, 429 {"statusCode":429,"max":1,"ttl":60000,"ban":false}',
  ),
  '`addHeaders`, `addHeadersOnExceeding`': [
    same(
      peer({ addHeaders: NO_HEADERS, addHeadersOnExceeding: NO_HEADERS }, times(3), LEGACY),
      ours({ headers: false }, times(3), LEGACY),
      [
        '200 x-ratelimit-limit=- x-ratelimit-remaining=- x-ratelimit-reset=- retry-after=-',
        '200 x-ratelimit-limit=- x-ratelimit-remaining=- x-ratelimit-reset=- retry-after=-',
        '429 x-ratelimit-limit=- x-ratelimit-remaining=- x-ratelimit-reset=- retry-after=60',
      ].join(', '),
    ),
    same(
      peer({ addHeaders: NO_RESET, addHeadersOnExceeding: NO_RESET }, times(3), LEGACY),
      ours({ headers: { format: 'legacy', names: { reset: false } } }, times(3), LEGACY),
      [
        '200 x-ratelimit-limit=2 x-ratelimit-remaining=1 x-ratelimit-reset=- retry-after=-',
        '200 x-ratelimit-limit=2 x-ratelimit-remaining=0 x-ratelimit-reset=- retry-after=-',
        '429 x-ratelimit-limit=2 x-ratelimit-remaining=0 x-ratelimit-reset=- retry-after=60',
      ].join(', '),
    ),
    differs(
      peer({ max: 1, addHeaders: { 'retry-after': false } }, times(2), fields('retry-after')),
      ours({ limit: 1, headers: false }, times(2), fields('retry-after')),
      { peer: '200 retry-after=-, 429 retry-after=-', ours: '200 retry-after=-, 429 retry-after=60' },
      'Refusals always have `Retry-After`',
    ),
  ],
  '`enableDraftSpec`': [
    same(
      peer({ enableDraftSpec: true }, times(3), DRAFT),
      ours({ headers: 'draft-6' }, times(3), DRAFT),
      [
        '200 ratelimit-limit=2 ratelimit-remaining=1 ratelimit-reset=60',
        '200 ratelimit-limit=2 ratelimit-remaining=0 ratelimit-reset=60',
        '429 ratelimit-limit=2 ratelimit-remaining=0 ratelimit-reset=60',
      ].join(', '),
    ),
    same(
      peer({}, times(3), LEGACY),
      ours({ headers: { format: 'legacy', reset: 'delta-seconds' } }, times(3), LEGACY),
      [
        '200 x-ratelimit-limit=2 x-ratelimit-remaining=1 x-ratelimit-reset=60 retry-after=-',
        '200 x-ratelimit-limit=2 x-ratelimit-remaining=0 x-ratelimit-reset=60 retry-after=-',
        '429 x-ratelimit-limit=2 x-ratelimit-remaining=0 x-ratelimit-reset=60 retry-after=60',
      ].join(', '),
    ),
  ],
  '`onExceeding`, `onExceeded`': same(
    noticed(async (note) => ask(await serve(peerOf({ onExceeding: () => note(true), onExceeded: () => note(false) })))),
    noticed(async (note) =>
      ask(await serve(oursOf({ onVerdict: (_request: FastifyRequest, { allowed }: Verdict) => note(allowed) }))),
    ),
    [true, true, false],
  ),

  // Methods
  '`config: { rateLimit: { … } }`, `config: { rateLimit: false }`': same(
    peer({ max: 1 }, paths('/own', '/own', '/none', '/none'), status, (app) => {
      route({ max: 1 })(app)
      route(false, '/none')(app)
    }),
    ours({ limit: 1 }, paths('/own', '/own', '/none', '/none'), status, (app) => {
      route({ limit: 1 })(app)
      route(false, '/none')(app)
    }),
    '200, 429, 200, 200',
  ),
  '`app.rateLimit(options)` as a hook': [
    same(
      peer({ global: false }, paths('/own', '/own'), status, hooked({ max: 1 })),
      ours({ global: false }, paths('/own', '/own'), status, hooked({ limit: 1, window: '1m' })),
      '200, 429',
    ),
    differs(
      peer({ max: 1 }, paths('/own', '/own', '/own'), status, hooked({ max: 2 })),
      ours({ limit: 1 }, paths('/own', '/own', '/own'), status, hooked({ limit: 2, window: '1m' })),
      { peer: '200, 200, 429', ours: '200, 429, 429' },
      'both count',
    ),
  ],
  '`app.createRateLimit(options)`, called in a handler': same(
    peer({ global: false }, paths('/own', '/own', '/own'), body, (app) => {
      const check = (app as never as { createRateLimit(options: object): Check }).createRateLimit({
        max: 2,
        timeWindow: 60_000,
      })
      app.get('/own', async (request) => `${(await check(request)).isExceeded}`)
    }),
    ours({ global: false }, paths('/own', '/own', '/own'), body, (app) => {
      const limiter = createLimiter({ limit: 2, window: '1m' })
      app.get('/own', async (request) => `${!(await limiter.consume(request.ip)).allowed}`)
    }),
    '200 false, 200 false, 200 true',
  ),
  '`isAllowed` (in the allow list)': untried('the page names nothing that replaces it'),
  '`isExceeded`, `isBanned`': untried('tried under `app.createRateLimit(options)`, and `ban`'),
  '`max`, `timeWindow` of a result': same(
    peerResult(({ max, timeWindow }) => [max, timeWindow]),
    ourResult(({ limits }) => [limits[0]?.limit, limits[0]?.windowMs]),
    [2, 60_000],
  ),
  '`remaining`, `ttl`, `ttlInSeconds`': same(
    peerResult(({ remaining, ttl, ttlInSeconds }) => [remaining, ttl, ttlInSeconds], 3),
    ourResult(({ remaining, retryAfterMs = 0 }) => [remaining, retryAfterMs, Math.ceil(retryAfterMs / 1000)], 3),
    [0, 60_000, 60],
  ),
  '`increment: false`': same(
    peerResult(({ remaining }) => remaining, 1, { increment: false }),
    async () => {
      const limiter = createLimiter({ limit: 2, window: '1m' })
      return (await limiter.peek('ann')).remaining
    },
    2,
  ),
  '`normalizeIP(ip)`': differs(
    () =>
      ['::ffff:203.0.113.9', '203.0.113.9', '2001:db8:0:1:2::3', '2001:db8:0:1:2::4'].map((ip) =>
        peerPlugin.normalizeIP(ip),
      ),
    noticed(async (note) => {
      const onVerdict = (_request: FastifyRequest, { keys }: Verdict) => note(keys[0]?.value)
      const sent = ips('::ffff:203.0.113.9', '203.0.113.9', '2001:db8:0:1:2::3', '2001:db8:0:1:2::4')
      await ask(await serve(oursOf({ onVerdict })), sent)
    }),
    {
      peer: ['203.0.113.9', '203.0.113.9', '2001:db8:0:1::', '2001:db8:0:1::'],
      ours: ['203.0.113.9', '203.0.113.9', '2001:db8:0:1::/64', '2001:db8:0:1::/64'],
    },
    '`byIp()` does it',
  ),
}
