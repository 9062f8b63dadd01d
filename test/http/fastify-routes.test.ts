import { createRequire } from 'node:module'
import { byUser, everyone, memoryStore, perMinute, type RateLimitPluginOptions, rateLimit } from '@sluice/fastify'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'

// Its types declare the same properties as those of this project.
const peerRateLimit = createRequire(import.meta.url)('@fastify/rate-limit')

const ok = async () => 'ok'

async function serverWith(options: RateLimitPluginOptions) {
  const app = fastify()
  await app.register(rateLimit, options as never)
  return app
}

async function statuses(app: FastifyInstance, url: string, times: number) {
  const seen: number[] = []
  for (let n = 0; n < times; n++) seen.push((await app.inject(url)).statusCode)
  return seen
}

describe('options of a route', () => {
  test('a route can override limit, window or other options of the plugin, and counts by itself', async () => {
    const app = await serverWith({ name: 'all', limit: 2, window: '1m' })
    app.get('/global', ok)
    app.get('/limit', { config: { rateLimit: { limit: 1 } } }, ok)
    app.get('/window', { config: { rateLimit: { window: '1h' } } }, ok)
    app.get('/cost', { config: { rateLimit: { cost: 2 } } }, ok)
    expect((await app.inject('/limit')).headers['ratelimit-policy']).toBe('"default";q=1;w=60')
    expect(await statuses(app, '/limit', 1)).toEqual([429])
    expect((await app.inject('/window')).headers['ratelimit-policy']).toBe('"default";q=2;w=3600')
    expect(await statuses(app, '/cost', 2)).toEqual([200, 429])
    expect(await statuses(app, '/global', 3)).toEqual([200, 200, 429])
  })

  test('a limit without a window is rejected when the route is added, beside limits of the plugin', async () => {
    const app = await serverWith({ limits: [perMinute(5)] })
    expect(() => app.get('/', { config: { rateLimit: { limit: 1 } } }, ok)).toThrow(
      'rateLimit of "/": limit: expected a window beside it, as the plugin has limits',
    )
    const none = await serverWith({ global: false })
    expect(() => none.get('/', { config: { rateLimit: { window: '1m' } } }, ok)).toThrow(
      'rateLimit of "/": window: expected a limit beside it',
    )
  })
})

describe('groups of routes', () => {
  test('routes of one group share one limiter, which the first of them describes', async () => {
    const app = await serverWith({ global: false, store: memoryStore(), key: everyone() })
    app.get('/a', { config: { rateLimit: { group: 'search', limit: 2, window: '1m' } } }, ok)
    app.get('/b', { config: { rateLimit: { group: 'search' } } }, ok)
    expect(() => app.get('/c', { config: { rateLimit: { group: 'search', limit: 9 } } }, ok)).toThrow(
      'group "search": expected no options beside group, got limit',
    )
    expect(() => app.get('/d', { config: { rateLimit: { group: 'a b', limit: 9, window: '1m' } } }, ok)).toThrow(
      'group: expected 1 to 64 letters',
    )
    expect((await app.inject('/a')).headers.ratelimit).toBe('"search";r=1;t=60')
    expect((await app.inject('/b')).headers.ratelimit).toBe('"search";r=0;t=60')
    expect(await statuses(app, '/a', 1)).toEqual([429])
  })
})

describe('the option hook', () => {
  test.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)(
    'the plugin limits in %s',
    async (hook) => {
      const app = await serverWith({ limit: 1, window: '1m', hook })
      app.get('/', ok)
      expect(await statuses(app, '/', 2)).toEqual([200, 429])
      expect(await statuses(app, '/nowhere', 1)).toEqual([429])
    },
  )

  test('a route in preHandler can count by its body, beside a plugin in onRequest', async () => {
    const app = await serverWith({ limit: 9, window: '1m' })
    const byName = ({ body }: { body: unknown }) => (body as { name: string }).name
    app.post('/', { config: { rateLimit: { limit: 1, hook: 'preHandler', key: byName } } }, ok)
    const post = async (name: string) => (await app.inject({ method: 'POST', url: '/', payload: { name } })).statusCode
    expect([await post('ann'), await post('ann'), await post('bob')]).toEqual([200, 429, 200])
  })

  test('an unknown hook is rejected', async () => {
    await expect(serverWith({ limit: 1, window: '1m', hook: 'onSend' as never })).rejects.toThrow(
      'rateLimit: hook: expected one of onRequest, preParsing, preValidation, preHandler, got "onSend"',
    )
  })

  test.each(['preValidation', 'preHandler'] as const)(
    "in %s a route's limiter sees the user that a later hook finds, from the plugin and from the route",
    async (hook) => {
      const users = { key: byUser(userOf), anonymous: 'by-ip' } as const
      const everywhere = await serverWith({ limit: 1, window: '1m', hook, ...users })
      const one = await serverWith({ global: false, hook })
      const other = await serverWith({ limit: 100, window: '1m' })
      for (const app of [everywhere, one, other]) findsUsersIn(app, hook)
      everywhere.get('/', ok)
      one.get('/', { config: { rateLimit: { limit: 1, window: '1m', ...users } } }, ok)
      other.get('/', { config: { rateLimit: { limit: 1, window: '1m', hook, ...users } } }, ok)
      for (const app of [everywhere, one, other]) {
        expect(await statuses(app, '/?userId=ann', 2)).toEqual([200, 429])
        expect(await statuses(app, '/?userId=bob', 1)).toEqual([200])
        expect(await statuses(app, '/', 2)).toEqual([200, 429])
        // A HEAD route of its own, with the same limiter.
        expect((await app.inject({ method: 'HEAD', url: '/?userId=ann' })).statusCode).toBe(429)
      }
    },
  )

  test.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)(
    'in %s the limiter runs where that of @fastify/rate-limit does, but in the first two before later hooks',
    async (hook) => {
      const order = async (register: (app: FastifyInstance, limiter: () => void) => Promise<unknown>) => {
        const seen: string[] = []
        const app = fastify()
        const note = (name: string) => async () => void seen.push(name)
        app.addHook(hook as 'onRequest', note('before'))
        await register(app, () => seen.push('limiter'))
        app.addHook(hook as 'onRequest', note('after'))
        app.get('/', { [hook]: note('of the route') }, ok)
        await app.register(async (child) => {
          child.addHook(hook as 'onRequest', note('of the child'))
          child.get('/child', ok)
        })
        await app.inject('/')
        await app.inject('/child')
        return seen
      }
      const own = await order(async (app, limiter) => {
        const key = () => {
          limiter()
          return 'k'
        }
        await app.register(rateLimit, { limit: 9, window: '1m', hook, key })
      })
      const peer = await order(async (app, limiter) => {
        await app.register(peerRateLimit, {
          hook,
          keyGenerator: () => {
            limiter()
            return 'k'
          },
        })
      })
      expect(peer).toEqual([
        ...['before', 'after', 'of the route', 'limiter'],
        ...['before', 'after', 'of the child', 'limiter'],
      ])
      const first = ['before', 'limiter', 'after', 'of the route', 'before', 'limiter', 'after', 'of the child']
      expect(own).toEqual(hook === 'onRequest' || hook === 'preParsing' ? first : peer)
    },
  )

  test('in a late hook the plugin limits unknown and earlier routes once as well', async () => {
    const app = fastify()
    let decisions = 0
    const key = () => `${++decisions && 'k'}`
    app.register(rateLimit, { limit: 4, window: '1m', hook: 'preHandler', key })
    app.get('/before', ok)
    await app.after()
    app.get('/after', ok)
    await app.register(async (child) => child.get('/', ok), { prefix: '/child' })
    expect(await statuses(app, '/before', 1)).toEqual([200])
    expect(await statuses(app, '/after', 1)).toEqual([200])
    expect(await statuses(app, '/nowhere', 1)).toEqual([404])
    expect([...(await statuses(app, '/child', 1)), ...(await statuses(app, '/child/', 1))]).toEqual([200, 429])
    expect(await statuses(app, '/nowhere', 1)).toEqual([429])
    expect(decisions).toBe(6)
  })

  test('a second plugin in a late hook adds its limit, and routes with a shared options object are limited', async () => {
    const app = fastify()
    const config = { rateLimit: { limit: 2, window: '1m', key: everyone() } } as const
    app.register(rateLimit, { name: 'minute', limit: 5, window: '1m', hook: 'preHandler' })
    app.register(rateLimit, { name: 'second', limit: 1, window: '1s', hook: 'preHandler' })
    app.get('/before', { config }, ok)
    await app.after()
    app.get('/after', { config }, ok)
    app.get('/', ok)
    expect((await app.inject('/')).headers.ratelimit).toBe('"minute";r=4;t=60, "second";r=0;t=1')
    expect([...(await statuses(app, '/after', 1)), ...(await statuses(app, '/before', 2))]).toEqual([200, 200, 429])
  })
})

describe('values of config.rateLimit that are neither options nor false', () => {
  const wrong = [5, 0, true, null, '1m', [], () => {}, new Map(), Promise.resolve({ limit: 1, window: '1m' })]

  test.each(wrong.map((own) => [own]))('config.rateLimit %s is rejected when the route is added', async (own) => {
    for (const global of [true, false]) {
      const app = await serverWith({ global, limit: 1, window: '1m' })
      expect(() => app.get('/', { config: { rateLimit: own as never } }, ok)).toThrow(
        /^rateLimit of "\/": expected an object of options or false, got /,
      )
      expect(() => app.rateLimit(own as never)).toThrow(/^app\.rateLimit: expected an object of options, got /)
      app.get('/none', { config: { rateLimit: false } }, ok)
      app.get('/unset', { config: { rateLimit: undefined } as never }, ok)
      expect(await statuses(app, '/none', 2)).toEqual([200, 200])
      expect(await statuses(app, '/unset', 2)).toEqual([200, global ? 429 : 200])
    }
  })

  test.each(wrong.map((own) => [own]))(
    'config.rateLimit %s fails each request to a route added before the plugin',
    async (own) => {
      const app = fastify()
      app.register(rateLimit, { limit: 1, window: '1m' })
      app.get('/', { config: { rateLimit: own as never } }, ok)
      expect(await statuses(app, '/', 2)).toEqual([500, 500])
    },
  )
})

test('the plugin limits routes of plugins that were registered before it', async () => {
  const app = fastify()
  await app.register(async (child) => {
    child.get('/child', ok)
    child.get('/own', { config: { rateLimit: { limit: 2, window: '1m' } } }, ok)
  })
  await app.register(rateLimit, { limit: 1, window: '1m' })
  expect(await statuses(app, '/child', 2)).toEqual([200, 429])
  expect(await statuses(app, '/own', 3)).toEqual([200, 200, 429])
})

interface WithUser {
  userId?: string
}

const userOf = (request: FastifyRequest) => (request as WithUser).userId

/** As in the README of @fastify/rate-limit. */
function findsUsersIn(app: FastifyInstance, hook: 'preValidation' | 'preHandler') {
  app.decorateRequest('userId', '')
  app.addHook(hook, async (request) => {
    const { userId } = request.query as WithUser
    if (userId) (request as WithUser).userId = userId
  })
}
