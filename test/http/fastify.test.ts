import {
  everyone,
  type FastifyRateLimitOptions,
  memoryStore,
  type RateLimitPluginOptions,
  type RouteRateLimitOptions,
  rateLimit,
} from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'
import { distantStore } from '../support/outages.js'

const statuses = async (
  app: ReturnType<typeof fastify>,
  url: string,
  times: number,
  method: 'GET' | 'HEAD' = 'GET',
) => {
  const seen: number[] = []
  for (let n = 0; n < times; n++) seen.push((await app.inject({ method, url })).statusCode)
  return seen
}

test('a route has the global limit, its own limit instead, or none', async () => {
  const app = fastify()
  await app.register(rateLimit, { name: 'all', limit: 2, window: '1m' })
  app.get('/global', async () => 'ok')
  app.get('/own', { config: { rateLimit: { name: 'own', limit: 1, window: '1m' } } }, async () => 'ok')
  app.get('/none', { config: { rateLimit: false } }, async () => 'ok')
  expect(await statuses(app, '/own', 2)).toEqual([200, 429])
  expect(await statuses(app, '/none', 4)).toEqual([200, 200, 200, 200])
  expect(await statuses(app, '/global', 3)).toEqual([200, 200, 429])
  expect((await app.inject('/own')).headers['ratelimit-policy']).toBe('"own";q=1;w=60')
  expect((await app.inject('/none')).headers).not.toHaveProperty('ratelimit')
})

test('the HEAD route that Fastify adds shares the limiter of its GET route', async () => {
  const app = fastify()
  await app.register(rateLimit, { global: false })
  app.get('/own', { config: { rateLimit: { limit: 2, window: '1m' } } }, async () => 'ok')
  expect(await statuses(app, '/own', 1, 'HEAD')).toEqual([200])
  expect(await statuses(app, '/own', 2)).toEqual([200, 429])
  expect(await statuses(app, '/own', 1, 'HEAD')).toEqual([429])
})

test('the plugin limits unknown paths with a custom 404 handler, too', async () => {
  const app = fastify()
  await app.register(rateLimit, { limit: 1, window: '1m' })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send('nothing here'))
  expect(await statuses(app, '/nowhere', 2)).toEqual([404, 429])
})

test('limiters of routes on one store count separately, unless their options are one object', async () => {
  const app = fastify()
  await app.register(rateLimit, { global: false, store: memoryStore(), key: everyone() })
  const shared = { limit: 1, window: '1m' } as const
  app.get('/a', { config: { rateLimit: { limit: 1, window: '1m' } } }, async () => 'ok')
  app.get('/b', { config: { rateLimit: { limit: 1, window: '1m' } } }, async () => 'ok')
  app.get('/c', { config: { rateLimit: shared } }, async () => 'ok')
  app.get('/d', { config: { rateLimit: shared } }, async () => 'ok')
  app.get('/e', { onRequest: app.rateLimit({ limit: 1, window: '1m' }) }, async () => 'ok')
  expect(await statuses(app, '/a', 2)).toEqual([200, 429])
  expect(await statuses(app, '/b', 2)).toEqual([200, 429])
  expect(await statuses(app, '/c', 1)).toEqual([200])
  expect(await statuses(app, '/d', 1)).toEqual([429])
  expect(await statuses(app, '/e', 2)).toEqual([200, 429])
})

test('a hook for one route works as preHandler, where the body is known', async () => {
  const app = fastify()
  await app.register(rateLimit, { global: false })
  const byName = app.rateLimit({ limit: 1, window: '1m', key: ({ body }) => (body as { name: string }).name })
  app.post('/', { preHandler: byName }, async ({ rateLimit }) => ({ remaining: rateLimit?.remaining }))
  const post = async (name: string) => {
    const { statusCode, json } = await app.inject({ method: 'POST', url: '/', payload: { name } })
    return [statusCode, json().remaining]
  }
  expect(await post('ann')).toEqual([200, 0])
  expect(await post('ann')).toEqual([429, undefined])
  expect(await post('bob')).toEqual([200, 0])
})

test('the plugin applies to the whole app, including plugins registered later', async () => {
  const app = fastify()
  await app.register(rateLimit, { limit: 1, window: '1m' })
  await app.register(async (child) => {
    child.get('/child', async ({ rateLimit }) => ({ remaining: rateLimit?.remaining }))
  })
  expect(await statuses(app, '/child', 2)).toEqual([200, 429])
})

test('a second registration adds a limit, and routes stay with the first', async () => {
  const app = fastify()
  await app.register(rateLimit, { name: 'minute', limit: 5, window: '1m' })
  await app.register(rateLimit, { name: 'second', limit: 1, window: '1s' })
  app.get('/', async () => 'ok')
  app.get('/own', { config: { rateLimit: { name: 'own', limit: 3, window: '1m' } } }, async () => 'ok')
  expect((await app.inject('/')).headers.ratelimit).toBe('"minute";r=4;t=60, "second";r=0;t=1')
  expect((await app.inject('/own')).headers.ratelimit).toBe('"own";r=2;t=60')
})

test('a mistake in the limiter of a route is rejected when the route is added', async () => {
  const app = fastify()
  await app.register(rateLimit, { global: false })
  expect(() => app.get('/', { config: { rateLimit: { limit: -1, window: '1m' } } }, async () => 'ok')).toThrow(
    /limit: expected a whole number/,
  )
})

test('a route is its pattern, and unknown paths share one name', async () => {
  const app = fastify()
  const routes: (string | undefined)[] = []
  await app.register(rateLimit, {
    limit: 9,
    window: '1m',
    key: (_request, { route }) => {
      routes.push(route)
      return 'k'
    },
  })
  app.get('/users/:id', async () => 'ok')
  await app.inject('/users/7')
  await app.inject('/nowhere')
  expect(routes).toEqual(['/users/:id', '(no route)'])
})

test('app.rateLimit.limiter is the global limiter, to block and to peek', async () => {
  const app = fastify()
  await app.register(rateLimit, { limit: 2, window: '1m' })
  app.get('/', async () => 'ok')
  await app.inject('/')
  expect((await app.rateLimit.limiter?.peek('127.0.0.1'))?.remaining).toBe(1)
  await app.rateLimit.limiter?.block('127.0.0.1', { for: '1h' })
  expect(await statuses(app, '/', 1)).toEqual([429])
})

const ok = async () => 'ok'
const own = (options: FastifyRateLimitOptions | false) => ({ config: { rateLimit: options as RouteRateLimitOptions } })

describe.each([
  [
    'a registration that is not awaited',
    (app: FastifyInstance, options: RateLimitPluginOptions) => void app.register(rateLimit, options as never),
  ],
  ['a route before the registration', undefined],
])('%s', (_when, early) => {
  async function serverWith(options: RateLimitPluginOptions, addRoutes: (app: FastifyInstance) => void) {
    const app = fastify()
    early?.(app, options)
    addRoutes(app)
    if (!early) await app.register(rateLimit, options as never)
    return app
  }

  test('each route has its own limit, the global one, or none, with a late registration', async () => {
    const app = await serverWith({ name: 'all', limit: 2, window: '1m' }, (app) => {
      app.get('/own', own({ name: 'own', limit: 1, window: '1m' }), ok)
      app.get('/global', ok)
      app.get('/none', own(false), ok)
    })
    expect(await statuses(app, '/own', 2)).toEqual([200, 429])
    expect(await statuses(app, '/own', 1, 'HEAD')).toEqual([429])
    expect((await app.inject('/own')).headers['ratelimit-policy']).toBe('"own";q=1;w=60')
    expect(await statuses(app, '/none', 4)).toEqual([200, 200, 200, 200])
    expect(await statuses(app, '/global', 3)).toEqual([200, 200, 429])
  })

  test('routes that share their options share a limiter, with the options of the plugin', async () => {
    const shared = { limit: 2, window: '1m' } as const
    const app = await serverWith({ global: false, key: everyone(), headers: 'legacy' }, (app) => {
      app.get('/a', own(shared), ok)
      app.get('/b', own(shared), ok)
    })
    expect(await statuses(app, '/a', 1, 'HEAD')).toEqual([200])
    expect(await statuses(app, '/b', 2)).toEqual([200, 429])
    expect((await app.inject('/a')).headers).toMatchObject({ 'x-ratelimit-limit': '2' })
  })

  test('a mistake in the limiter of a route reaches the error handler, and the route never runs', async () => {
    let runs = 0
    const app = await serverWith({ store: memoryStore(), limit: 9, window: '1m' }, (app) => {
      app.setErrorHandler((error, _request, reply) =>
        reply.code(500).send({ message: ((error as Error).cause as Error).message }),
      )
      app.get('/wrong', own({ limit: -1, window: '1m' }), async () => ++runs)
    })
    for (let n = 0; n < 2; n++) {
      const { statusCode, json } = await app.inject('/wrong')
      expect(statusCode).toBe(500)
      expect(json().message).toMatch(/^policy "wrong_GET": limit: expected a whole number/)
    }
    expect(runs).toBe(0)
  })

  test('each route has its own limiter, whichever is called first in which process', async () => {
    const store = memoryStore()
    const process = () =>
      serverWith({ global: false, store, key: everyone() }, (app) => {
        app.get('/users', own({ limit: 1, window: '1m' }), ok)
        app.post('/users', own({ limit: 1, window: '1m' }), ok)
      })
    const [one, other] = [await process(), await process()]
    const status = async (app: FastifyInstance, method: 'GET' | 'HEAD' | 'POST') =>
      (await app.inject({ method, url: '/users' })).statusCode
    expect(await status(one, 'HEAD')).toBe(200)
    expect(await status(other, 'POST')).toBe(200)
    expect([await status(one, 'GET'), await status(one, 'POST')]).toEqual([429, 429])
    expect([await status(other, 'GET'), await status(other, 'POST')]).toEqual([429, 429])
  })
})

test('a registration that is not awaited checks the routes of later plugins at the start', async () => {
  const app = fastify()
  app.register(rateLimit, { global: false })
  app.register(async (child) => {
    child.get('/', own({ limit: -1, window: '1m' }), ok)
  })
  await expect(app.ready()).rejects.toMatchObject({ code: 'INVALID_POLICY' })
})

test('no route has the name of the global limiter, or of another route', async () => {
  const app = fastify()
  await app.register(rateLimit, { store: memoryStore(), limit: 9, window: '1m', key: everyone() })
  const one = () => own({ limit: 1, window: '1m' })
  app.get('/default', one(), ok)
  app.get('/a', one(), ok)
  app.post('/a', one(), ok)
  app.get('/a-2', one(), ok)
  app.get('/', ok)
  for (const url of ['/', '/default', '/a', '/a-2']) expect(await statuses(app, url, 1)).toEqual([200])
  expect((await app.inject({ method: 'POST', url: '/a' })).statusCode).toBe(200)
})

describe('options that a route does not inherit', () => {
  const limit = { name: 'own', limit: 1, window: '1m' } as const
  const counts = (status: number) => status !== 304
  const away = () =>
    Object.assign(
      distantStore(() => 1_000_000),
      { isAway: true },
    )

  test.each<[string, FastifyRateLimitOptions | RateLimitPluginOptions, Partial<FastifyRateLimitOptions>]>([
    ['a share beside decide: "deny"', { unavailable: { share: 0.25 } }, { unavailable: { decide: 'deny' } }],
    ['a share beside decide: "allow"', { unavailable: { share: 0.25 } }, { unavailable: { decide: 'allow' } }],
    ['decide beside a share', { unavailable: { decide: 'deny' } }, { unavailable: { share: 0.25 } }],
    ['a percentage beside mode: "report"', { enforce: { percent: 100 } }, { enforce: { mode: 'report' } }],
    ['mode: "report" beside a percentage', { enforce: { mode: 'report' } }, { enforce: { percent: 100 } }],
    ['a salt beside mode: "report"', { enforce: { percent: 100, salt: 'x' } }, { enforce: { mode: 'report' } }],
    [
      'a salt beside no percentage',
      { enforce: { percent: 0, salt: 'x' } },
      { enforce: { percent: undefined } } as never,
    ],
    ['lengths beside no largest body', { body: { max: 9, requireLength: true } }, { body: undefined } as never],
    ['a longest wait beside no count', { count: { only: counts, within: '1s' } }, { count: undefined } as never],
  ])('a route does not inherit an option that its own options exclude: %s', async (_what, plugin, route) => {
    const app = fastify()
    await app.register(rateLimit, { limit: 9, window: '1m', ...plugin } as never)
    app.get('/', own({ ...limit, ...route }), ok)
    app.get('/hook', { onRequest: app.rateLimit({ ...limit, ...route } as never) }, ok)
    const second = route.enforce?.mode === 'report' ? 200 : 429
    expect(await statuses(app, '/', 2)).toEqual([200, second])
    expect(await statuses(app, '/hook', 2)).toEqual([200, second])
  })

  test('a route has the default in place of an excluded option', async () => {
    const app = fastify()
    await app.register(rateLimit, { limit: 9, window: '1m', store: away(), unavailable: { decide: 'deny' } })
    app.get('/local', own({ limit: 4, window: '1m', unavailable: { share: 0.25 } }), ok)
    app.get('/deny', own({ limit: 4, window: '1m' }), ok)
    expect(await statuses(app, '/local', 2)).toEqual([200, 429])
    expect(await statuses(app, '/deny', 1)).toEqual([503])
  })

  test('a route inherits options that fit its own', async () => {
    const app = fastify()
    const inherited = { unavailable: { share: 0.25 }, enforce: { percent: 0 }, count: { only: counts } }
    await app.register(rateLimit, { limit: 9, window: '1m', store: away(), ...inherited })
    const route = own({
      limit: 4,
      window: '1m',
      unavailable: { decide: 'local' },
      enforce: { mode: 'enforce' },
      count: { within: '1s' } as never,
    })
    app.get('/', route, async ({ rateLimit }) => [rateLimit?.allowed, rateLimit?.reported])
    expect((await app.inject('/')).json()).toEqual([true, true])
    expect((await app.inject('/')).json()).toEqual([false, true])
  })

  test('contradictory options of a route itself are rejected', async () => {
    const app = fastify()
    await app.register(rateLimit, { limit: 9, window: '1m', unavailable: { share: 0.25 }, enforce: { mode: 'report' } })
    const add = (options: Partial<FastifyRateLimitOptions>) => () => app.get('/', own({ ...limit, ...options }), ok)
    expect(add({ unavailable: { decide: 'deny', share: 0.5 } })).toThrow(
      /unavailable: share: expected none beside decide "deny"/,
    )
    expect(add({ enforce: { mode: 'report', percent: 10 } })).toThrow(
      /enforce: percent: expected none beside mode "report"/,
    )
    expect(add({ count: { within: '1s' } as never })).toThrow(
      /count: only: expected "success", "failure", a status such as 401, or a function/,
    )
  })
})
