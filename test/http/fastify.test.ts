import { everyone, memoryStore, rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { expect, test } from 'vitest'

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

test('a route has the global limit, a limit of its own instead, or none', async () => {
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

test('limits unknown paths with a 404 handler of the app too', async () => {
  const app = fastify()
  await app.register(rateLimit, { limit: 1, window: '1m' })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send('nothing here'))
  expect(await statuses(app, '/nowhere', 2)).toEqual([404, 429])
})

test('limiters of routes that share the store count by themselves, unless they are one object', async () => {
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

test('is in force in the whole app, in plugins registered later too', async () => {
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

test('a mistake in the limiter of a route shows when the route is added', async () => {
  const app = fastify()
  await app.register(rateLimit, { global: false })
  expect(() => app.get('/', { config: { rateLimit: { limit: -1, window: '1m' } } }, async () => 'ok')).toThrow(
    /limit: expected a whole number/,
  )
})

test('routes are known by their pattern, and unknown paths by one name', async () => {
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

test('the global limiter can be reached, to block and to look', async () => {
  const app = fastify()
  await app.register(rateLimit, { limit: 2, window: '1m' })
  app.get('/', async () => 'ok')
  await app.inject('/')
  expect((await app.rateLimit.limiter?.peek('127.0.0.1'))?.remaining).toBe(1)
  await app.rateLimit.limiter?.block('127.0.0.1', { for: '1h' })
  expect(await statuses(app, '/', 1)).toEqual([429])
})
