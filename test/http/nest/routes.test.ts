// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import {
  Controller,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  Module,
  Scope,
  UseGuards,
  VersioningType,
} from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import {
  byHeader,
  byRoute,
  byUser,
  everyone,
  Limiter,
  memoryStore,
  pass,
  RateLimit,
  RateLimitException,
  rateLimitGuard,
  SkipRateLimit,
  SluiceGuard,
  SluiceLimiters,
  SluiceModule,
  slidingLog,
} from '@sluice/nestjs'
import { describe, expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'
import { classOf, get, guarded, PLATFORMS } from '../support/nest.js'
import { serve } from './apps.js'

const minute = { window: '1m' } as const

describe.each(PLATFORMS)('Nest on %s', (platform) => {
  const app = (options: Parameters<typeof SluiceModule.forRoot>[0], ...controllers: ReturnType<typeof classOf>[]) =>
    guarded({ limits: SluiceModule.forRoot(options), controllers })

  test('a key that depends on a guard of the handler is missing before a global guard: the warning says what to change', async () => {
    class Auth {
      canActivate(context: ExecutionContext): boolean {
        const request = context.switchToHttp().getRequest()
        request.user = { id: request.headers['x-user'] }
        return true
      }
    }
    const key = byUser((request: { user?: { id: string } }) => request.user?.id)
    const options = { limit: 1, ...minute, key }
    const Users = classOf(
      'Users',
      {
        early: get('early', RateLimit(options), UseGuards(Auth)),
        late: get('late', SkipRateLimit(), UseGuards(Auth, rateLimitGuard({ name: 'late', ...options }))),
      },
      Controller(),
    )
    const { request } = await serve(platform, app({ limit: 100, ...minute }, Users))
    const statusOf = async (path: string, user: string) => (await request(path, { headers: { 'x-user': user } })).status
    const warnings = await warningsDuring(async () => expect(await statusOf('/early', 'ann')).toBe(400))
    expect(warnings.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/"Users-early": key: .* SluiceGuard is global .* rateLimitGuard\(/),
    )
    expect([await statusOf('/late', 'ann'), await statusOf('/late', 'ann')]).toEqual([200, 429])
    expect(await statusOf('/late', 'bob')).toBe(200)
  })

  test('three named limits of which the last refuses leave the first two uncharged', async () => {
    const limits = [
      slidingLog({ name: 'first', limit: 10, ...minute }),
      slidingLog({ name: 'second', limit: 20, ...minute }),
      slidingLog({ name: 'third', limit: 2, ...minute }),
    ]
    const Reports = classOf('Reports', { list: get('', RateLimit({ limits })) }, Controller('reports'))
    const { app: nest, request, statuses } = await serve(platform, app({}, Reports))
    expect(await statuses('/reports', 5)).toEqual([200, 200, 429, 429, 429])
    const refused = await request('/reports')
    expect(refused.headers.get('ratelimit')).toMatch(/^"first";r=8;t=\d+, "second";r=18;t=\d+, "third";r=0;t=\d+$/)
    expect([refused.headers.get('retry-after'), refused.headers.get('retry-after-third')]).toEqual([
      expect.stringMatching(/^(59|60)$/),
      null,
    ])
    const { limits: left } = await nest.get(SluiceLimiters).get('Reports-list').peek({ ip: '127.0.0.1' })
    expect(left.map(({ remaining }) => remaining)).toEqual([8, 18, 0])
  })

  test("the module's limit is one for all routes; a decorator replaces it, that of a method that of its class", async () => {
    const Items = classOf(
      'Items',
      {
        list: get('list'),
        one: get('one'),
        search: get('search', RateLimit({ limit: 1, ...minute })),
        health: get('health', SkipRateLimit()),
      },
      Controller('items'),
    )
    const Free = classOf(
      'Free',
      { any: get('any'), some: get('some', RateLimit({ limit: 1, ...minute })) },
      Controller('free'),
      SkipRateLimit(),
    )
    const Tight = classOf(
      'Tight',
      {
        one: get('one'),
        two: get('two'),
        own: get('own', RateLimit({ limit: 2, ...minute })),
        free: get('free', SkipRateLimit()),
      },
      Controller('tight'),
      RateLimit({ limit: 1, ...minute }),
    )
    const { statuses } = await serve(platform, app({ limit: 3, ...minute }, Items, Free, Tight))
    expect(await statuses('/items/search', 2)).toEqual([200, 429])
    expect(await statuses('/items/health', 5)).toEqual([200, 200, 200, 200, 200])
    expect(await statuses('/free/any', 5)).toEqual([200, 200, 200, 200, 200])
    expect(await statuses('/free/some', 2)).toEqual([200, 429])
    expect([...(await statuses('/tight/one', 1)), ...(await statuses('/tight/two', 1))]).toEqual([200, 429])
    expect(await statuses('/tight/own', 3)).toEqual([200, 200, 429])
    expect(await statuses('/tight/free', 3)).toEqual([200, 200, 200])
    // None of these was charged to the module's limit.
    expect(await statuses('/items/list', 2)).toEqual([200, 200])
    expect(await statuses('/items/one', 2)).toEqual([200, 429])
  })

  test('a guard that is global, on the class and on the method charges once', async () => {
    const Items = classOf(
      'Items',
      {
        list: get('', UseGuards(SluiceGuard), RateLimit({ limit: 2, ...minute })),
        all: get('all', UseGuards(SluiceGuard)),
      },
      Controller('items'),
      UseGuards(SluiceGuard),
    )
    const { request, statuses } = await serve(platform, app({ limit: 2, ...minute }, Items))
    expect(await (await request('/items')).text()).toBe('left: 1')
    expect(await statuses('/items', 2)).toEqual([200, 429])
    expect(await statuses('/items/all', 3)).toEqual([200, 200, 429])
  })

  test('a decorator limits without a global guard, and a route without one is not limited', async () => {
    const Items = classOf(
      'Items',
      { list: get('', RateLimit({ limit: 1, ...minute })), open: get('open') },
      Controller('items'),
    )
    class App {}
    Module({ imports: [SluiceModule.forRoot({ limit: 1, ...minute })], controllers: [Items] })(App)
    const { statuses } = await serve(platform, App)
    expect(await statuses('/items', 2)).toEqual([200, 429])
    expect(await statuses('/items/open', 3)).toEqual([200, 200, 200])
    expect(await statuses('/nowhere', 3)).toEqual([404, 404, 404])
  })

  test('a decorator inherits the options of the module that it does not name', async () => {
    const store = memoryStore()
    const Items = classOf(
      'Items',
      { list: get('list', RateLimit({ limit: 1 })), other: get('other', RateLimit({ limit: 1, headers: 'draft-6' })) },
      Controller('items'),
    )
    const options = { name: 'api', store, limit: 5, ...minute, key: byHeader('x-key'), headers: 'legacy' } as const
    const { app: nest, request } = await serve(platform, app(options, Items))
    const as = (key: string, path: string) => request(path, { headers: { 'x-key': key } })
    expect((await as('ann', '/items/list')).headers.get('x-ratelimit-limit')).toBe('1')
    expect((await as('ann', '/items/list')).status).toBe(429)
    expect((await as('bob', '/items/list')).status).toBe(200)
    expect((await as('ann', '/items/other')).headers.get('ratelimit-limit')).toBe('1')
    expect(
      (
        await nest
          .get(SluiceLimiters)
          .get('Items-list')
          .peek({ 'header:x-key': 'ann' } as never)
      ).remaining,
    ).toBe(0)
  })

  test('handlers with one object of options share one limiter; classes of one name have their own', async () => {
    const shared = { name: 'login', limit: 2, ...minute }
    const V1 = classOf(
      'Users',
      { login: get('login', RateLimit(shared)), list: get('', RateLimit({ limit: 1, ...minute })) },
      Controller('v1'),
    )
    const V2 = classOf(
      'Users',
      { login: get('login', RateLimit(shared)), list: get('', RateLimit({ limit: 1, ...minute })) },
      Controller('v2'),
    )
    const { app: nest, statuses } = await serve(platform, app({ store: memoryStore() }, V1, V2))
    expect([...(await statuses('/v1/login', 1)), ...(await statuses('/v2/login', 2))]).toEqual([200, 200, 429])
    expect([...(await statuses('/v1', 2)), ...(await statuses('/v2', 2))]).toEqual([200, 429, 200, 429])
    const limiters = nest.get(SluiceLimiters)
    expect(['login', 'Users-list', 'Users-list-2'].map((name) => limiters.get(name).name)).toEqual([
      'login',
      'Users-list',
      'Users-list-2',
    ])
    expect(() => limiters.get('logn')).toThrow(
      'expected the name of a limiter (login, Users-list, Users-list-2), got "logn"',
    )
  })

  test('the limiter of the module can be injected, and blocks clients', async () => {
    class Admin {
      readonly limiter: Limiter
      constructor(limiter: Limiter) {
        this.limiter = limiter
      }
    }
    Injectable()(Admin)
    Inject(Limiter)(Admin, undefined, 0)
    const module = guarded({
      limits: SluiceModule.forRootAsync({
        inject: ['LIMIT'],
        imports: [settings()],
        useFactory: (limit) => ({ limit, ...minute }),
      }),
      controllers: [classOf('Items', { list: get('') }, Controller())],
      providers: [Admin],
    })
    const { app: nest, statuses } = await serve(platform, module)
    expect(await statuses('/', 1)).toEqual([200])
    await nest.get(Admin).limiter.block({ ip: '127.0.0.1' } as never, { for: '1h', reason: 'test' })
    expect(await statuses('/', 1)).toEqual([429])
  })

  test.each(['useClass', 'useExisting'] as const)('%s makes the options of the module', async (way) => {
    class Settings {
      readonly limit: number
      constructor(limit: number) {
        this.limit = limit
      }
      async createSluiceOptions() {
        return { limit: this.limit, ...minute }
      }
    }
    Injectable()(Settings)
    Inject('LIMIT')(Settings, undefined, 0)
    class Config {}
    Module({ imports: [settings()], providers: [Settings], exports: [Settings] })(Config)
    const imports = [way === 'useClass' ? settings() : Config]
    const limits = SluiceModule.forRootAsync({ imports, [way]: Settings })
    const controllers = [classOf('Items', { list: get('') }, Controller())]
    const { statuses } = await serve(platform, guarded({ limits, controllers }))
    expect(await statuses('/', 3)).toEqual([200, 200, 429])
  })

  test('pass() hands refusals to exception filters, as an HttpException with the verdict', async () => {
    const seen: unknown[] = []
    const Items = classOf('Items', { list: get('') }, Controller())
    const options = { limit: 1, ...minute, respond: pass() }
    const plain = await serve(platform, app(options, Items))
    const filtered = await serve(platform, app(options, Items), (nest) =>
      nest.useGlobalFilters({
        catch(error: RateLimitException, host: { getArgByIndex(index: number): unknown }) {
          seen.push(error instanceof RateLimitException, error instanceof HttpException, error.verdict?.allowed)
          nest.getHttpAdapter().reply(host.getArgByIndex(1), { slow: 'down' }, error.getStatus())
        },
      } as never),
    )
    for (const { status, request } of [plain, filtered]) {
      expect(await status('/')).toBe(200)
      const refused = await request('/')
      expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('ratelimit')]).toEqual([
        429,
        '60',
        '"default";r=0;t=60',
      ])
      const body = await refused.json()
      expect(body).toEqual(
        status === plain.status ? { statusCode: 429, message: 'Too Many Requests' } : { slow: 'down' },
      )
    }
    expect(seen).toEqual([true, true, false])
    // Paths without a route as well.
    expect(await (await plain.request('/nowhere')).json()).toEqual({ statusCode: 429, message: 'Too Many Requests' })
  })

  test('a client that cannot be identified gets 401 of the limiter, or of exception filters with onInvalid', async () => {
    const key = byUser(() => undefined, { challenge: 'Bearer' })
    const Items = classOf(
      'Items',
      { own: get('own'), filtered: get('filtered', RateLimit({ limit: 1, ...minute, onInvalid: 'pass' })) },
      Controller(),
    )
    const { request } = await serve(platform, app({ limit: 1, ...minute, key }, Items))
    for (const path of ['/own', '/filtered']) {
      const { status, headers } = await request(path)
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
    expect(await (await request('/filtered')).json()).toEqual({ statusCode: 401, message: 'Unauthorized' })
  })

  test('a route is known by its pattern with prefix and version, whatever its parameters', async () => {
    const Items = classOf('Items', { one: get(':id') }, Controller({ path: 'items', version: ['1', '2'] }))
    const { statuses, status } = await serve(platform, app({ limit: 2, ...minute, key: byRoute() }, Items), (nest) => {
      nest.setGlobalPrefix('api')
      nest.enableVersioning({ type: VersioningType.URI })
    })
    expect([await status('/api/v1/items/1'), await status('/api/v1/items/2'), await status('/api/v1/items/3')]).toEqual(
      [200, 200, 429],
    )
    expect(await statuses('/api/v2/items/1', 3)).toEqual([200, 200, 429])
    // Paths without a route are one route.
    expect([await status('/api/v3/items/1'), await status('/nowhere'), await status('/else')]).toEqual([404, 404, 429])
  })

  test('requests of browsers for permission are not counted, nor unknown paths if these are excluded', async () => {
    const Items = classOf('Items', { list: get('') }, Controller('items'))
    const { status, statuses } = await serve(
      platform,
      app({ limit: 1, ...minute, unknownPaths: false }, Items),
      (nest) => nest.enableCors(),
    )
    const preflight = { method: 'OPTIONS', headers: { Origin: 'http://a', 'Access-Control-Request-Method': 'GET' } }
    expect(await statuses('/items', 2, preflight)).toEqual([204, 204])
    expect(await statuses('/nowhere', 2)).toEqual([404, 404])
    expect([await status('/items'), await status('/items'), await status('/items', { method: 'HEAD' })]).toEqual([
      200, 429, 429,
    ])
  })

  test.each([
    ['its class', { useClass: SluiceGuard }],
    ['a factory', { inject: [SluiceGuard], useFactory: (guard: SluiceGuard) => guard }],
  ])('a global guard that is made for each request, by %s, is global: unknown paths count', async (_by, made) => {
    class App {}
    Module({
      imports: [SluiceModule.forRoot({ limit: 2, ...minute })],
      controllers: [classOf('Items', { list: get('items') }, Controller())],
      providers: [{ provide: APP_GUARD, scope: Scope.REQUEST, ...made }],
    })(App)
    const { status, statuses } = await serve(platform, App)
    expect([await status('/items'), ...(await statuses('/nowhere', 2))]).toEqual([200, 404, 429])
  })

  test('a controller of its own for each request has one limiter', async () => {
    const Items = classOf(
      'Items',
      { list: get('', RateLimit({ limit: 1, ...minute, key: everyone() })) },
      Controller({ path: 'items', scope: Scope.REQUEST }),
    )
    const { statuses } = await serve(platform, app({}, Items))
    expect(await statuses('/items', 2)).toEqual([200, 429])
  })

  test('the limit of a method that subclasses inherit is one limit', async () => {
    const Base = classOf('Base', { list: get('list', RateLimit({ limit: 1, ...minute })) })
    class A extends Base {}
    class B extends Base {}
    Controller('a')(A)
    Controller('b')(B)
    const { status } = await serve(platform, app({}, A, B))
    expect([await status('/a/list'), await status('/b/list')]).toEqual([200, 429])
  })
})

/** A module with a provider that options depend on. */
function settings() {
  class Settings {}
  Module({ providers: [{ provide: 'LIMIT', useValue: 2 }], exports: ['LIMIT'] })(Settings)
  return Settings
}
