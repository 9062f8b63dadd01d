import { everyone, memoryStore, perMinute, type RateLimitPluginOptions, rateLimit } from '@sluice/fastify'
import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'

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

describe('a route overrides a part of the plugin', () => {
  test('a limit, a window, or neither; it counts by itself', async () => {
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

  test('a limit alone beside limits of the plugin is refused when the route is added', async () => {
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

describe('routes of one group', () => {
  test('share one limiter, which the first of them describes', async () => {
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

describe('hook', () => {
  test.each(['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const)('the plugin in %s', async (hook) => {
    const app = await serverWith({ limit: 1, window: '1m', hook })
    app.get('/', ok)
    expect(await statuses(app, '/', 2)).toEqual([200, 429])
    expect(await statuses(app, '/nowhere', 1)).toEqual([429])
  })

  test('a route in preHandler counts by its body, beside a plugin in onRequest', async () => {
    const app = await serverWith({ limit: 9, window: '1m' })
    const byName = ({ body }: { body: unknown }) => (body as { name: string }).name
    app.post('/', { config: { rateLimit: { limit: 1, hook: 'preHandler', key: byName } } }, ok)
    const post = async (name: string) => (await app.inject({ method: 'POST', url: '/', payload: { name } })).statusCode
    expect([await post('ann'), await post('ann'), await post('bob')]).toEqual([200, 429, 200])
  })

  test('another word is refused', async () => {
    await expect(serverWith({ limit: 1, window: '1m', hook: 'onSend' as never })).rejects.toThrow(
      'rateLimit: hook: expected one of onRequest, preParsing, preValidation, preHandler, got "onSend"',
    )
  })
})
