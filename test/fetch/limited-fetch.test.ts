import { concurrency, memoryStore, perSecond, slidingWindow } from '@sluice/core'
import { createTurns, limitedFetch } from '@sluice/fetch'
import { afterEach, expect, test } from 'vitest'
import { type Service, type ServiceOptions, startService } from './service.js'

const services: Service[] = []
async function serviceOf(options: ServiceOptions): Promise<Service> {
  const service = await startService(options)
  services.push(service)
  return service
}
afterEach(async () => {
  for (const service of services.splice(0)) await service.close()
})

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))

test.each(['github', 'openai', 'anthropic', 'ietf'] as const)(
  'no request is refused by a service that tells its limit, also after it grows (%s)',
  async (dialect) => {
    const service = await serviceOf({ dialect, limit: 20, windowMs: 1000 })
    const api = limitedFetch(fetch)
    const first = await times(30, () => api(service.url))
    service.limit = 40
    const later = await times(50, () => api(service.url))
    expect([...first, ...later].map(({ status }) => status)).toEqual(Array(80).fill(200))
    expect(service.refusedAt).toEqual([])
  },
)

test('the first request of a key is alone, so that its response tells the limits', async () => {
  const service = await serviceOf({ dialect: 'ietf', limit: 3, windowMs: 1000, latencyMs: 50 })
  const api = limitedFetch(fetch)
  await times(3, () => api(service.url))
  const [first, second] = service.arrivedAt as [number, number]
  expect(second - first).toBeGreaterThanOrEqual(45)
})

test('the limits of the user hold beside those of the service, which tells none', async () => {
  const service = await serviceOf({ dialect: 'bare', limit: 1000, windowMs: 1000 })
  const sentAt: number[] = []
  const noted: typeof fetch = (...request) => {
    sentAt.push(Date.now())
    return fetch(...request)
  }
  const api = limitedFetch(noted, { limits: [perSecond(5)] })
  // None is sent before it is admitted, and the first is not admitted before this.
  const began = Date.now()
  await times(11, () => api(service.url))
  expect(sentAt[5]).toBeGreaterThanOrEqual(began + 990)
  expect(sentAt[10]).toBeGreaterThanOrEqual(began + 1990)
})

test('a limit of concurrent requests is free again with each response, and each failure', async () => {
  let [open, most, sent] = [0, 0, 0]
  const api = limitedFetch(
    async () => {
      most = Math.max(most, ++open)
      await new Promise((resolve) => setTimeout(resolve, 5))
      open--
      if (++sent % 3 === 0) throw new TypeError('fetch failed')
      return new Response('ok')
    },
    { limits: [concurrency({ limit: 2, ttl: '1h' })] },
  )
  const all = await Promise.allSettled(Array.from({ length: 12 }, () => api('http://service.test/')))
  expect(all.filter(({ status }) => status === 'fulfilled').length).toBe(8)
  expect(most).toBe(2)
})

test('Retry-After holds all requests of the key, in every process that shares the store', async () => {
  const service = await serviceOf({ dialect: 'retry-after', limit: 1, windowMs: 60_000 })
  const store = memoryStore()
  const one = limitedFetch(fetch, { store, name: 'partner' })
  const other = limitedFetch(fetch, { store, name: 'partner', maxWait: '5s' })
  expect((await one(service.url)).status).toBe(200)
  expect((await one(service.url)).status).toBe(429)
  const held = expect(one(service.url, { signal: AbortSignal.timeout(1500) })).rejects.toThrow('timeout')
  await expect(other(`${service.url}path?token=secret`)).rejects.toThrow(
    /^policy "partner": fetch of http:\/\/127\.0\.0\.1:\d+: waited \d+ ms for a pause that the service asks for, at least \d{5} ms more: longer than maxWait, 5000 ms$/,
  )
  await held
  expect(service.arrivedAt.length).toBe(2)
  // Other keys are not held.
  const another = await serviceOf({ dialect: 'bare', limit: 9, windowMs: 1000 })
  expect((await other(another.url)).status).toBe(200)
})

test('an aborted request leaves its place, and is not sent', async () => {
  const service = await serviceOf({ dialect: 'bare', limit: 1000, windowMs: 1000 })
  const api = limitedFetch(fetch, { limits: [perSecond(1)] })
  const abort = new AbortController()
  const first = api(service.url)
  const aborted = times(50, () => api(`${service.url}aborted`, { signal: abort.signal }).catch(({ name }) => name))
  await first
  const last = api(service.url)
  abort.abort()
  expect(new Set(await aborted)).toEqual(new Set(['AbortError']))
  expect((await last).status).toBe(200)
  expect(service.arrivedAt.length).toBe(2)
  await expect(api(service.url, { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
})

test('requests of a higher priority go first', async () => {
  const order: string[] = []
  const api = limitedFetch(
    async (input) => {
      order.push(new URL(String(input)).pathname)
      return new Response()
    },
    { limits: [perSecond(1)], priority: ({ url }) => (url.pathname === '/paid' ? 1 : 0) },
  )
  await api('http://service.test/first')
  await Promise.all(['free', 'free', 'paid'].map((path) => api(`http://service.test/${path}`)))
  expect(order.slice(0, 3)).toEqual(['/first', '/free', '/paid'])
})

test.each([
  ['a GET', {}, 2],
  ['a POST with an Idempotency-Key', { method: 'POST', body: 'text', headers: { 'Idempotency-Key': '1' } }, 2],
  ['a POST', { method: 'POST', body: 'text' }, 1],
  [
    'a stream',
    { method: 'POST', body: new Blob(['text']).stream(), duplex: 'half', headers: { 'Idempotency-Key': '1' } },
    1,
  ],
] as const)('a refused request is sent again if it is safe and can be (%s)', async (_, init, sent) => {
  const statuses = [429, 200]
  const bodies: string[] = []
  const api = limitedFetch(
    async (input, given) => {
      bodies.push(await new Request(input, given).text())
      return new Response(null, { status: statuses[bodies.length - 1] ?? 200, headers: { 'retry-after-ms': '20' } })
    },
    { retry: { attempts: 1 } },
  )
  const { status } = await api('http://service.test/', init as RequestInit)
  expect({ status, sent: bodies.length }).toEqual({ status: sent === 2 ? 200 : 429, sent })
  expect(new Set(bodies).size).toBe(1)
})

test('a refusal that no wait ends is passed on, and holds nothing', async () => {
  let calls = 0
  const api = limitedFetch(
    async () => {
      calls++
      return Response.json({ error: { code: 'insufficient_quota' } }, { status: 429, headers: { 'Retry-After': '60' } })
    },
    {
      maxWait: '1s',
      retry: { attempts: 3 },
      kindOf: async (response) =>
        (await response.clone().text()).includes('insufficient_quota') ? 'final' : undefined,
    },
  )
  expect((await api('http://service.test/')).status).toBe(429)
  expect(await (await api('http://service.test/')).json()).toEqual({ error: { code: 'insufficient_quota' } })
  expect(calls).toBe(2)
})

test('onWait tells what a request waits for', async () => {
  const told: string[] = []
  const api = limitedFetch(async () => new Response(), {
    limits: [perSecond(1)],
    onWait: ({ origin, waiting, reason }) => told.push(`${origin} ${waiting} ${reason}`),
  })
  await times(2, () => api('http://service.test/path?token=secret'))
  expect(told).toEqual(['http://service.test 1 the limit fetch-1s'])
})

test('a refused request is passed on if its wait would exceed maxWait', async () => {
  const api = limitedFetch(async () => new Response('later', { status: 429, headers: { 'Retry-After': '60' } }), {
    maxWait: '1s',
    retry: { attempts: 1 },
  })
  const response = await api('http://service.test/')
  expect([response.status, await response.text()]).toEqual([429, 'later'])
})

test('a response reaches its caller while the store is away, and this process waits alone', async () => {
  const store = memoryStore()
  let calls = 0
  const api = limitedFetch(
    async () => {
      calls++
      await store.close()
      return new Response(null, { status: 429, headers: { 'Retry-After': '60' } })
    },
    { store, maxWait: '1s' },
  )
  expect((await api('http://service.test/')).status).toBe(429)
  await expect(api('http://service.test/')).rejects.toThrow()
  expect(calls).toBe(1)
})

test('a request that fails loses no place', async () => {
  let calls = 0
  const api = limitedFetch(
    async () => {
      if (++calls === 1) throw new TypeError('fetch failed')
      return new Response()
    },
    { limits: [perSecond(10)] },
  )
  await expect(api('http://service.test/')).rejects.toThrow('fetch failed')
  expect((await api('http://service.test/')).status).toBe(200)
})

test.each<[unknown, string]>([
  [{ maxwait: '1s' }, 'maxwait'],
  [{ pace: 'evenly' }, 'pace: expected "even" or "burst"'],
  [{ retry: { attempts: 0 } }, 'retry: attempts'],
  [{ maxWait: 'soon' }, 'maxWait'],
  [{ retry: { attempts: 1, methods: 'POST' } }, 'retry: methods: expected an array of methods'],
  [{ retry: { attempts: 1, methods: null } }, 'retry: methods: expected an array of methods'],
  [{ retry: null }, 'retry: options: expected an object'],
  [null, 'options: expected an object, got null'],
  [{ cost: 5 }, 'cost: expected none without limits, got 5: add limits, or leave out cost'],
  [{ limits: [perSecond(1)], cost: null }, 'cost: expected a function, got null'],
  [{ limits: perSecond(1) }, 'limits: expected an array of limits, such as [perSecond(10)], got an object'],
  [{ limits: [null] }, 'limits[0]: expected a limit made by a constructor'],
  ...['sent', 'slowed', 'slowing', 'paced-us'].map(
    (unit) =>
      [
        { limits: [slidingWindow({ unit, limit: 10, window: '1m' })] },
        `limits: unit: expected none of paced-us, slowed, sent, slowing, which are counted beside your limits, got "${unit}"`,
      ] as [unknown, string],
  ),
])('options that are wrong are rejected: %o', (options, message) => {
  expect(() => limitedFetch(fetch, options as never)).toThrow(message)
})

test('units that the client counts itself are no cost', async () => {
  const api = limitedFetch(async () => new Response(), { limits: [perSecond(10)], cost: () => ({ sent: 5 }) })
  await expect(api('http://service.test/')).rejects.toMatchObject({ code: 'INVALID_COST' })
  const turn = await createTurns({ limits: [perSecond(10)] }).take({ url: new URL('http://service.test/') })
  await expect(turn.settle({ slowed: 5 })).rejects.toMatchObject({ code: 'INVALID_COST' })
})

test('methods that are sent again may be in any case', async () => {
  const statuses = [429, 200]
  const api = limitedFetch(
    async () => new Response(null, { status: statuses.shift() ?? 500, headers: { 'retry-after-ms': '20' } }),
    { retry: { attempts: 1, methods: ['post'] } },
  )
  expect((await api('http://service.test/', { method: 'POST', body: 'text' })).status).toBe(200)
})
