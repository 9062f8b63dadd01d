import 'reflect-metadata'
import type { Server } from 'node:http'
import { Catch, Controller, type DynamicModule, type ExecutionContext, Get, Module, type Type } from '@nestjs/common'
import { APP_FILTER, APP_GUARD } from '@nestjs/core'
import { SkipThrottle, Throttle, ThrottlerGuard, ThrottlerModule, ThrottlerStorageService } from '@nestjs/throttler'
import {
  byIp,
  byRoute,
  compose,
  keyed,
  pass,
  perMinute,
  perSecond,
  RateLimit,
  reject,
  SkipRateLimit,
  SluiceGuard,
  SluiceModule,
  slidingLog,
} from '@sluice/nestjs'
import type { Request } from 'express'
import { expect } from 'vitest'
import { classOf, createNest } from '../../../http/support/nest.js'
import { onEnd, passMs, redis, storeOn } from './environment.js'
import {
  ask,
  body,
  differs,
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

/** The routes of an app: decorators by path. */
type Routes = Readonly<Record<string, readonly unknown[]>>

const NONE: Routes = { '': [], other: [] }

/** An app behind a proxy, with a guard for all of it. */
async function serve(limits: DynamicModule, guard: Type, routes: Routes, providers: unknown[] = []): Promise<Server> {
  // @nestjs/throttler counts by the names of functions.
  const handlers = Object.entries(routes).map(([path, decorators]) => {
    const name = `at${path}`
    return [name, [{ [name]: () => 'ok' }[name] as () => string, Get(path), ...decorators]] as const
  })
  class App {}
  Module({
    imports: [limits],
    controllers: [classOf('Routes', Object.fromEntries(handlers), Controller())],
    providers: [{ provide: APP_GUARD, useClass: guard }, ...(providers as [])],
  })(App)
  const app = await createNest('express', App, { trustProxy: true })
  onEnd(() => app.close())
  await app.init()
  return app.getHttpServer()
}

const peerApp = (options: object, routes: Routes = NONE) => {
  const throttlers = [{ ttl: 60_000, limit: 2 }]
  return serve(ThrottlerModule.forRoot({ throttlers, ...options } as never), ThrottlerGuard, routes)
}
const ourApp = (options: object, routes: Routes = NONE) => serve(SluiceModule.forRoot(options), SluiceGuard, routes)

const peer =
  (options: object, sent?: readonly Sent[], show?: Show, routes?: Routes): Look =>
  async () =>
    ask(await peerApp(options, routes), sent, show)
const ours =
  (options: object, sent?: readonly Sent[], show?: Show, routes?: Routes): Look =>
  async () =>
    ask(await ourApp({ ...MINUTE, ...options }, routes), sent, show)
const MINUTE = { limit: 2, window: '1m' }

/** The statuses of a request, after so many ms of another, and so on. */
const after =
  (app: () => Promise<Server>, ...waits: readonly number[]): Look =>
  async () => {
    const server = await app()
    const seen = [await ask(server, times(1))]
    for (const ms of waits) {
      passMs(ms)
      seen.push(await ask(server, times(1)))
    }
    return seen.join(', ')
  }

const short = (limit: number) => slidingLog({ name: 'short', limit, window: '1s' })
const long = (limit: number) => slidingLog({ name: 'long', limit, window: '1m' })
const TWO = [
  { name: 'short', ttl: 1000, limit: 1 },
  { name: 'long', ttl: 60_000, limit: 2 },
]
const SHORT_AND_LONG = [
  { name: 'short', ttl: 1000, limit: 2 },
  { name: 'long', ttl: 60_000, limit: 1 },
]
const AFTER_ONE = 'ratelimit="short";r=1;t=1, "long";r=0;t=60'
const QUOTA = fields('x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset')
const quotaOf = (limit: unknown, left: unknown, reset: unknown) =>
  `x-ratelimit-limit=${limit} x-ratelimit-remaining=${left} x-ratelimit-reset=${reset}`
const TWO_PASS = `200 ${quotaOf(2, 1, 60)}, 200 ${quotaOf(2, 0, 60)}`
const throttle = (options: object) => ({ throttlers: [{ ttl: 60_000, limit: 2, ...options }] })
const agent = (request: Request) => request.get('user')
const BOTS = times(2, { headers: { 'user-agent': 'a bot' } })
const LEGACY = fields('x-ratelimit-limit', 'x-ratelimit-remaining', 'ratelimit')

/** The text that a filter for exceptions responds with. */
const caught = (limits: DynamicModule, guard: Type): Look => {
  class Filter {
    catch(
      error: { getStatus(): number; name: string },
      host: { getArgByIndex(n: number): { status(code: number): { send(text: string): void } } },
    ) {
      host.getArgByIndex(1).status(error.getStatus()).send('by the filter')
    }
  }
  Catch()(Filter)
  return async () => ask(await serve(limits, guard, NONE, [{ provide: APP_FILTER, useClass: Filter }]), times(3), body)
}

export const ROWS: Rows = {
  // Differences
  'several limits': differs(
    // The refused requests were charged to the other limit, which refuses too in the end.
    peer({ throttlers: SHORT_AND_LONG }, times(3), fields('x-ratelimit-remaining-short')),
    ours({ limit: undefined, window: undefined, limits: [short(2), long(1)] }, times(3), fields('ratelimit')),
    {
      peer: '200 x-ratelimit-remaining-short=1, 429 x-ratelimit-remaining-short=0, 429 x-ratelimit-remaining-short=-',
      ours: `200 ${AFTER_ONE}, 429 ${AFTER_ONE}, 429 ${AFTER_ONE}`,
    },
    'all are charged, or none',
  ),
  'wait of a refusal': differs(
    peer({ throttlers: TWO }, times(2), fields('retry-after', 'retry-after-short')),
    ours(
      { limit: undefined, window: undefined, limits: [short(1), long(2)] },
      times(2),
      fields('retry-after', 'retry-after-short'),
    ),
    {
      peer: '200 retry-after=- retry-after-short=-, 429 retry-after=- retry-after-short=1',
      ours: '200 retry-after=- retry-after-short=-, 429 retry-after=1 retry-after-short=-',
    },
    '`Retry-After`, the longest wait',
  ),
  'the limit of the module': [
    differs(
      peer(throttle({ limit: 1 }), paths('/', '/other', '/other')),
      ours({ limit: 1 }, paths('/', '/other', '/other')),
      { peer: '200, 200, 429', ours: '200, 429, 429' },
      'one limit for all routes',
    ),
    same(
      peer(throttle({ limit: 1 }), paths('/', '/other', '/other')),
      ours({ limit: 1, key: compose(byIp(), byRoute()) }, paths('/', '/other', '/other')),
      '200, 200, 429',
    ),
  ],
  'paths without a route': [
    differs(
      peer(throttle({ limit: 1 }), paths('/no', '/no', '/')),
      ours({ limit: 1 }, paths('/no', '/no', '/')),
      { peer: '404, 404, 200', ours: '404, 429, 429' },
      'count if the guard is global',
    ),
    same(
      peer(throttle({ limit: 1 }), paths('/no', '/no', '/')),
      ours({ limit: 1, unknownPaths: false }, paths('/no', '/no', '/')),
      '404, 404, 200',
    ),
  ],
  'refused requests': differs(
    after(() => peerApp(throttle({ limit: 1, ttl: 10_000, blockDuration: 60_000 })), 5000, 10_000, 51_000),
    after(() => ourApp({ limit: 1, window: '10s' }), 5000, 10_000, 51_000),
    { peer: '200, 429, 429, 200', ours: '200, 429, 200, 200' },
    'block the client for `blockDuration`',
  ),
  refusals: [
    differs(
      caught(ThrottlerModule.forRoot([{ ttl: 60_000, limit: 2 }]), ThrottlerGuard),
      caught(SluiceModule.forRoot(MINUTE as never), SluiceGuard),
      { peer: '200 ok, 200 ok, 429 by the filter', ours: expect.stringMatching(/^200 ok, 200 ok, 429 {"type":/) },
      'sent by the limiter',
    ),
    same(
      caught(ThrottlerModule.forRoot([{ ttl: 60_000, limit: 2 }]), ThrottlerGuard),
      caught(SluiceModule.forRoot({ ...MINUTE, respond: pass() } as never), SluiceGuard),
      '200 ok, 200 ok, 429 by the filter',
    ),
  ],
  'quota headers': [
    differs(
      peer({}, times(1), LEGACY),
      ours({}, times(1), LEGACY),
      {
        peer: '200 x-ratelimit-limit=2 x-ratelimit-remaining=1 ratelimit=-',
        ours: '200 x-ratelimit-limit=- x-ratelimit-remaining=- ratelimit="default";r=1;t=60',
      },
      '`RateLimit` and `RateLimit-Policy`',
    ),
    differs(
      peer({}, times(3), QUOTA),
      ours({ headers: { format: 'legacy', reset: 'delta-seconds' } }, times(3), QUOTA),
      { peer: `${TWO_PASS}, 429 ${quotaOf('-', '-', '-')}`, ours: `${TWO_PASS}, 429 ${quotaOf(2, 0, 60)}` },
      'also in refusals',
    ),
  ],
  'messages over WebSockets': untried(
    'the page says what one has to write for @nestjs/throttler; test/http/nest tries ours',
  ),
  'counts on Redis': untried('a package by other authors; tried under `storage`'),

  // Options
  '`throttlers`': same(
    peer({
      throttlers: [
        { name: 'a', ttl: 1000, limit: 9 },
        { name: 'b', ttl: 60_000, limit: 1 },
      ],
    }),
    ours({ limit: undefined, window: undefined, limits: [perSecond(9), perMinute(1)] }),
    '200, 429, 429',
  ),
  '`name`': untried('tried under several limits'),
  '`ttl`': [
    same(
      after(() => peerApp(throttle({ limit: 1, ttl: 90_000 })), 89_000, 91_000),
      after(() => ourApp({ limit: 1, window: 90_000 }), 89_000, 91_000),
      '200, 429, 200',
    ),
    same(
      after(() => peerApp(throttle({ limit: 1, ttl: 60_000, blockDuration: 0 })), 59_000, 2000),
      after(() => ourApp({ limit: 1, window: '1m' }), 59_000, 2000),
      '200, 429, 200',
    ),
  ],
  '`limit`': [
    same(peer(throttle({ limit: 1 })), ours({ limit: 1 }), '200, 429, 429'),
    same(
      peer(
        throttle({ limit: (context: ExecutionContext) => (agent(context.switchToHttp().getRequest()) ? 2 : 1) }),
        users('ann', 'ann', 'ann'),
      ),
      ours({ limit: (request: Request) => (agent(request) ? 2 : 1) }, users('ann', 'ann', 'ann')),
      '200, 200, 429',
    ),
  ],
  '`blockDuration`': same(
    after(() => peerApp(throttle({ limit: 1, ttl: 10_000, blockDuration: 3_600_000 })), 0, 3_590_000, 20_000),
    after(
      () => ourApp({ limit: 1, window: '10s', ban: { after: 1, within: '10s', for: ['1h'] } }),
      0,
      3_590_000,
      20_000,
    ),
    '200, 429, 429, 200',
  ),
  '`getTracker`, `generateKey`': [
    same(
      peer(throttle({ limit: 1, getTracker: agent }), users('ann', 'bob', 'ann')),
      ours({ limit: 1, key: keyed('client', agent) }, users('ann', 'bob', 'ann')),
      '200, 200, 429',
    ),
    same(
      peer(throttle({ limit: 1, generateKey: () => 'all' }), paths('/', '/other', '/')),
      ours({ limit: 1, key: () => 'all' }, paths('/', '/other', '/')),
      '200, 429, 429',
    ),
  ],
  '`ipv6SubnetPrefix`': [
    same(
      peer(throttle({ limit: 1 }), ips('2001:db8::1', '2001:db8::2', '2001:db8:0:1::1')),
      ours({ limit: 1 }, ips('2001:db8::1', '2001:db8::2', '2001:db8:0:1::1')),
      '200, 429, 200',
    ),
    same(
      peer({ ...throttle({ limit: 1 }), ipv6SubnetPrefix: 56 }, ips('2001:db8::1', '2001:db8:0:1::1')),
      ours({ limit: 1, key: byIp({ ipv6Prefix: 56 }) }, ips('2001:db8::1', '2001:db8:0:1::1')),
      '200, 429',
    ),
  ],
  '`ignoreUserAgents`': same(
    peer(throttle({ limit: 1, ignoreUserAgents: [/bot/] }), [...BOTS, ...times(2)]),
    ours({ limit: 1, skip: (request: Request) => /bot/.test(request.headers['user-agent'] ?? '') }, [
      ...BOTS,
      ...times(2),
    ]),
    '200, 200, 200, 429',
  ),
  '`skipIf`': same(
    peer(
      throttle({ limit: 1, skipIf: (context: ExecutionContext) => !!agent(context.switchToHttp().getRequest()) }),
      users('ann', 'ann', '', ''),
    ),
    ours({ limit: 1, skip: (request: Request) => !!agent(request) }, users('ann', 'ann', '', '')),
    '200, 200, 200, 429',
  ),
  '`@SkipThrottle({ short: true })`': [
    same(
      peer({ throttlers: TWO }, times(3), status, { '': [SkipThrottle({ short: true })] }),
      ours({ limit: undefined, window: undefined, limits: [short(1), long(2)] }, times(3), status, {
        '': [RateLimit({ limits: { short: false } })],
      }),
      '200, 200, 429',
    ),
    same(
      peer({ throttlers: TWO }, times(3), status, { '': [SkipThrottle({ short: true, long: true })] }),
      ours({ limit: undefined, window: undefined, limits: [short(1), long(2)] }, times(3), status, {
        '': [SkipRateLimit()],
      }),
      '200, 200, 200',
    ),
  ],
  '`@Throttle({ short: … })`': same(
    peer(
      {
        throttlers: [
          { name: 'short', ttl: 1000, limit: 5 },
          { name: 'long', ttl: 60_000, limit: 9 },
        ],
      },
      times(2),
      status,
      { '': [Throttle({ short: { ttl: 1000, limit: 1 } })] },
    ),
    ours({ limit: undefined, window: undefined, limits: [short(5), long(9)] }, times(2), status, {
      '': [RateLimit({ limits: { short: perSecond(1) } })],
    }),
    '200, 429',
  ),
  '`forRootAsync` with `useClass` or `useExisting`': same(
    async () => {
      class Factory {
        createThrottlerOptions() {
          return [{ ttl: 60_000, limit: 2 }]
        }
      }
      return ask(await serve(ThrottlerModule.forRootAsync({ useClass: Factory }), ThrottlerGuard, NONE))
    },
    async () => {
      class Factory {
        createSluiceOptions() {
          return MINUTE as never
        }
      }
      return ask(await serve(SluiceModule.forRootAsync({ useClass: Factory }), SluiceGuard, NONE))
    },
    '200, 200, 429',
  ),
  '`storage`': same(
    async () => {
      const storage = new ThrottlerStorageService()
      onEnd(() => storage.onApplicationShutdown())
      return [await ask(await peerApp({ storage }), times(2)), await ask(await peerApp({ storage }), times(1))].join(
        ', ',
      )
    },
    async () => {
      const client = await redis()
      const app = () => ourApp({ name: 'api', ...MINUTE, store: storeOn(client) })
      return [await ask(await app(), times(2)), await ask(await app(), times(1))].join(', ')
    },
    '200, 200, 429',
  ),
  '`errorMessage`': [
    same(
      peer({ ...throttle({ limit: 1 }), errorMessage: 'Slow down.' }, times(2), body),
      ours({ limit: 1, respond: reject({ body: { statusCode: 429, message: 'Slow down.' } }) }, times(2), body),
      '200 ok, 429 {"statusCode":429,"message":"Slow down."}',
    ),
    differs(
      peer({ ...throttle({ limit: 1 }), errorMessage: 'Slow down.' }, times(2), body),
      ours({ limit: 1, respond: reject({ body: 'Slow down.' }) }, times(2), body),
      { peer: '200 ok, 429 {"statusCode":429,"message":"Slow down."}', ours: '200 ok, 429 Slow down.' },
      'A text is sent as it is',
    ),
  ],
  '`setHeaders`': differs(
    peer(throttle({ limit: 1, setHeaders: false }), times(2), fields('x-ratelimit-limit', 'retry-after')),
    ours({ limit: 1, headers: false }, times(2), fields('ratelimit', 'retry-after')),
    {
      peer: '200 x-ratelimit-limit=- retry-after=-, 429 x-ratelimit-limit=- retry-after=-',
      ours: '200 ratelimit=- retry-after=-, 429 ratelimit=- retry-after=60',
    },
    'Refusals always have `Retry-After`',
  ),
}
