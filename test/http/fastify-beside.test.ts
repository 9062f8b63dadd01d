import { createRequire } from 'node:module'
import { rateLimit, type Verdict } from '@sluice/fastify'
import { rateLimit as beside } from '@sluice/fastify/beside'
import makeFastify, { type FastifyInstance } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'

// Its types would clash with those of this plugin, which are in the same program.
const peer = createRequire(import.meta.url)('@fastify/rate-limit')
let app: FastifyInstance
afterEach(() => app.close())

const REMOTE = '203.0.113.9'
const BAN = { after: 3, within: '10m', for: ['1h'] } as const

async function statuses(url: string, times: number): Promise<number[]> {
  const sent: number[] = []
  for (let n = 0; n < times; n++) sent.push((await app.inject({ url, remoteAddress: REMOTE })).statusCode)
  return sent
}

describe.each([
  ['the other plugin first', true],
  ['this plugin first', false],
])('@fastify/rate-limit in the same app, %s', (_, isPeerFirst) => {
  const register = async (ours: () => Promise<unknown>) => {
    app = makeFastify()
    if (!isPeerFirst) await ours()
    await app.register(peer, { max: 3, timeWindow: '1 minute' })
    if (isPeerFirst) await ours()
  }

  test('each limits the routes that are configured under its name', async () => {
    await register(async () => app.register(beside, { global: false }))
    // As never: this program has the types of both plugins under one name.
    app.get('/old', { config: { rateLimit: { max: 1 } as never } }, async () => 'old')
    app.get('/moved', { config: { rateLimit: false, sluice: { limit: 2, window: '1m' } } }, async (request) => ({
      policy: request.sluice?.policy,
    }))
    app.get('/other', async () => 'other')
    expect(await statuses('/old', 2)).toEqual([200, 429])
    expect(await statuses('/moved', 4)).toEqual([200, 200, 429, 429])
    expect(await statuses('/other', 4)).toEqual([200, 200, 200, 429])
  })

  test('under one name, the app does not start, and the error says what to use', async () => {
    const started = register(async () => app.register(rateLimit, { limit: 5, window: '1m' })).then(() => app.ready())
    await expect(started).rejects.toThrow(/no other plugin that decorates app.rateLimit.*"@sluice\/fastify\/beside"/)
  })
})

test("a hook of the app puts its verdict where the plugin's requestProperty says", async () => {
  app = makeFastify()
  await app.register(rateLimit, { global: false, requestProperty: 'quota' })
  const onRequest = app.rateLimit({ limit: 5, window: '1m' })
  app.get('/', { onRequest }, async (request) => ({ left: (request as unknown as { quota: Verdict }).quota.remaining }))
  expect((await app.inject('/')).json()).toEqual({ left: 4 })
})

test('a second registration of this plugin is no other plugin', async () => {
  app = makeFastify()
  await app.register(rateLimit, { limit: 5, window: '1m' })
  await app.register(rateLimit, { name: 'second', limit: 1, window: '1m' })
  app.get('/', async () => 'ok')
  expect(await statuses('/', 2)).toEqual([200, 429])
})

test.each([
  ['its ban', { limit: 2, window: '1m' }, [200, 200, 429, 429, 429, 429], true],
  ['no ban with its own undefined', { limit: 2, window: '1m', ban: undefined }, [200, 200, 429, 429, 429, 429], false],
])('a route with a limit of its own has %s', async (_, own, expected, isBanned) => {
  app = makeFastify()
  await app.register(rateLimit, {
    limit: 100,
    window: '1m',
    ban: BAN,
    onVerdict: (_request, { reason }) => reasons.push(reason),
  })
  const reasons: (string | undefined)[] = []
  app.get('/', { config: { rateLimit: own as never } }, async () => 'ok')
  expect(await statuses('/', 6)).toEqual(expected)
  expect(reasons.at(-1)).toBe(isBanned ? 'banned' : 'limited')
})

test.each([
  ['count', { onDeny: 'charge' }, { count: { only: 'failure' } }],
  ["onDeny: 'charge'", { count: { only: 'failure' } }, { onDeny: 'charge' }],
])('a route with %s does not inherit what goes with it nowhere', async (_, plugins, own) => {
  app = makeFastify()
  await app.register(rateLimit, { limit: 100, window: '1m', ...(plugins as object) })
  app.get('/', { config: { rateLimit: { limit: 1, window: '1m', ...own } as never } }, async () => 'ok')
  expect((await statuses('/', 1))[0]).toBe(200)
})

test("a route with a limit of its own charges refused requests as the plugin's onDeny says", async () => {
  app = makeFastify()
  await app.register(rateLimit, { limit: 100, window: '1m', onDeny: 'charge' })
  const seen: number[] = []
  const onVerdict = (_request: unknown, { retryAfterMs = 0 }: { retryAfterMs?: number | undefined }) =>
    void seen.push(retryAfterMs)
  app.get('/', { config: { rateLimit: { limit: 1, window: '1h', onVerdict } } }, async () => 'ok')
  expect(await statuses('/', 3)).toEqual([200, 429, 429])
  expect(seen[2]).toBeGreaterThanOrEqual(seen[1] as number)
})
