import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  everyone,
  type HttpContext,
  type Limiter,
  leakyBucket,
  memoryStore,
  perMinute,
  perSecond,
  reject,
} from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import { type AppFactory, type AppSpec, type RunningApp, run } from './support/app.js'

/** What every adapter does, to the letter: statuses, headers and bodies are pinned here, not per framework. */
export function adapterContract(name: string, factory: AppFactory): void {
  describe(name, () => {
    const running: RunningApp[] = []
    const start = async (spec: AppSpec) => {
      const app = await run(factory, spec)
      running.push(app)
      return app
    }
    afterEach(async () => {
      for (const app of running.splice(0)) await app.close()
    })

    const clockAt = (now: number) => {
      const time = { now }
      return Object.assign(time, { store: memoryStore({ clock: () => time.now }) })
    }
    const statuses = async (app: RunningApp, path: string, times: number) => {
      const seen: number[] = []
      for (let n = 0; n < times; n++) seen.push((await request(app.server).get(path)).status)
      return seen
    }

    test('tells an admitted client its quota, and hands the verdict to the handler', async () => {
      const { store } = clockAt(1_000_000)
      const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 5, window: '10s' }] } } })
      const response = await request(app.server).get('/')
      expect(response.status).toBe(200)
      expect(response.headers['ratelimit-policy']).toBe('"api";q=5;w=10')
      expect(response.headers.ratelimit).toBe('"api";r=4;t=10')
      expect(response.headers).not.toHaveProperty('retry-after')
      expect(app.verdicts).toMatchObject([{ allowed: true, remaining: 4 }])
    })

    test('answers a refusal with 429, Retry-After and problem details, and does not run the handler', async () => {
      const time = clockAt(1_000_000)
      const { store } = time
      const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 1, window: '10s' }] } } })
      await request(app.server).get('/')
      time.now += 2500
      const response = await request(app.server).get('/')
      expect(response.status).toBe(429)
      expect(response.headers).toMatchObject({
        'ratelimit-policy': '"api";q=1;w=10',
        ratelimit: '"api";r=0;t=8',
        'retry-after': '8',
        'cache-control': 'no-store',
        'content-type': 'application/problem+json; charset=utf-8',
        'content-length': String(response.text.length),
      })
      expect(response.text).toBe(
        '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["api"]}',
      )
      expect(app.ran).toEqual(['/'])
    })

    test('lets a client in that waited exactly as long as Retry-After says, and none that came earlier', async () => {
      const time = clockAt(1_000_400)
      const { store } = time
      const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 2, window: '7s' }] } } })
      expect(await statuses(app, '/', 2)).toEqual([200, 200])
      time.now += 300
      const refused = await request(app.server).get('/')
      const wait = Number(refused.headers['retry-after'])
      time.now += (wait - 1) * 1000
      expect((await request(app.server).get('/')).status).toBe(429)
      time.now += 1000
      expect((await request(app.server).get('/')).status).toBe(200)
    })

    test('answers in a line of text a client that does not accept JSON', async () => {
      const { store } = clockAt(0)
      const app = await start({ routes: { '/': { limiters: [{ store, limit: 0, window: '10s' }] } } })
      const response = await request(app.server).get('/').set('Accept', 'text/plain')
      expect(response.status).toBe(429)
      expect(response.headers['content-type']).toBe('text/plain; charset=utf-8')
      expect(response.text).toMatch(/^Too many requests: .*\n$/)
    })

    test('answers a HEAD request with the headers of GET and no body, from the budget of GET', async () => {
      const { store } = clockAt(0)
      const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 2, window: '10s' }] } } })
      expect(await statuses(app, '/', 1)).toEqual([200])
      const head = await request(app.server).head('/')
      expect([head.status, head.headers.ratelimit]).toEqual([200, '"api";r=0;t=10'])
      const refused = await request(app.server).head('/')
      expect([refused.status, refused.text ?? '', refused.headers['retry-after']]).toEqual([429, '', '10'])
      expect(Number(refused.headers['content-length'])).toBeGreaterThan(100)
    })

    test('limits unknown paths too with a global limit', async () => {
      const { store } = clockAt(0)
      const app = await start({ global: [{ store, limit: 2, window: '10s' }], routes: { '/': {} } })
      expect(await statuses(app, '/', 1)).toEqual([200])
      expect(await statuses(app, '/nowhere', 2)).toEqual([404, 429])
    })

    test('reject can say 503, with a text, an object or a function of the request', async () => {
      const { store } = clockAt(0)
      const once = (name: string, respond: ReturnType<typeof reject>) => ({
        limiters: [{ name, store, limit: 1, window: '10s' as const, respond, headers: false as const }],
      })
      const app = await start({
        routes: {
          '/problem': once('a', reject({ status: 503 })),
          '/text': once('b', reject({ body: 'slow down' })),
          '/object': once('c', reject({ body: { slow: 'down' } })),
          '/function': once('d', reject({ body: async (_request, { reason }) => ({ reason }) })),
        },
      })
      const answer = async (path: string) => {
        expect(await statuses(app, path, 1)).toEqual([200])
        const { status, headers, text } = await request(app.server).get(path)
        return [status, headers['content-type'], headers['cache-control'], text]
      }
      expect(await answer('/problem')).toEqual([
        503,
        'application/problem+json; charset=utf-8',
        'no-store',
        '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,"violated-policies":["a"]}',
      ])
      expect(await answer('/text')).toEqual([429, 'text/plain; charset=utf-8', 'no-store', 'slow down'])
      expect(await answer('/object')).toEqual([429, 'application/json; charset=utf-8', 'no-store', '{"slow":"down"}'])
      expect(await answer('/function')).toEqual([
        429,
        'application/json; charset=utf-8',
        'no-store',
        '{"reason":"limited"}',
      ])
    })

    test('several limiters on one route are all told, and nothing is overwritten', async () => {
      const { store } = clockAt(0)
      const app = await start({
        global: [{ name: 'all', store, limit: 100, window: '1h' }],
        routes: {
          '/': {
            limiters: [
              { name: 'route', store, limit: 3, window: '10s' },
              { name: 'tight', store, limit: 1, window: '5s' },
            ],
          },
        },
      })
      const first = await request(app.server).get('/')
      expect(first.headers['ratelimit-policy']).toBe('"all";q=100;w=3600, "route";q=3;w=10, "tight";q=1;w=5')
      expect(first.headers.ratelimit).toBe('"all";r=99;t=3600, "route";r=2;t=10, "tight";r=0;t=5')
      const second = await request(app.server).get('/')
      expect(second.status).toBe(429)
      expect(second.headers.ratelimit).toBe('"all";r=98;t=3600, "route";r=1;t=10, "tight";r=0;t=5')
      expect(second.headers['retry-after']).toBe('5')
      expect(second.body['violated-policies']).toEqual(['tight'])
    })

    test('a Retry-After that is there already is raised, never lowered', async () => {
      const { store } = clockAt(0)
      const limiters = [{ store, limit: 1, window: '10s' as const }]
      const long = await start({ presetHeaders: { 'Retry-After': '60' }, routes: { '/': { limiters } } })
      expect(await statuses(long, '/', 1)).toEqual([200])
      expect((await request(long.server).get('/')).headers['retry-after']).toBe('60')
      const short = await start({ presetHeaders: { 'Retry-After': '3' }, routes: { '/': { limiters } } })
      expect((await request(short.server).get('/')).headers['retry-after']).toBe('10')
    })

    test('several limits of one limiter are charged all or none', async () => {
      const time = clockAt(0)
      const { store } = time
      const app = await start({
        routes: { '/': { limiters: [{ name: 'api', store, limits: [perSecond(1), perMinute(3)] }] } },
      })
      expect(await statuses(app, '/', 3)).toEqual([200, 429, 429])
      time.now += 1000
      const response = await request(app.server).get('/')
      expect(response.headers['ratelimit-policy']).toBe('"api-1s";q=1;w=1, "api-1m";q=3;w=60')
      expect(response.headers.ratelimit).toBe('"api-1s";r=0;t=1, "api-1m";r=1;t=60')
    })

    test('a cost larger than a limit ever holds is refused without a time to come back', async () => {
      const { store } = clockAt(0)
      const app = await start({
        routes: { '/': { limiters: [{ name: 'api', store, limit: 5, window: '10s', cost: 6 }] } },
      })
      const response = await request(app.server).get('/')
      expect(response.status).toBe(429)
      expect(response.headers).not.toHaveProperty('retry-after')
      expect(response.headers.ratelimit).toBe('"api";r=5;t=0')
      expect(response.body).toMatchObject({ status: 429, 'violated-policies': ['api'] })
      expect(response.body.detail).toMatch(/costs more/)
    })

    test('a cost of the request charges that many units', async () => {
      const { store } = clockAt(0)
      const app = await start({
        routes: {
          '/': { limiters: [{ name: 'api', store, limit: 5, window: '10s', cost: async () => 3 }] },
        },
      })
      const seen: unknown[] = []
      for (let n = 0; n < 2; n++) {
        const { status, headers } = await request(app.server).get('/')
        seen.push([status, headers.ratelimit, headers['retry-after']])
      }
      expect(seen).toEqual([
        [200, '"api";r=2;t=10', undefined],
        [429, '"api";r=2;t=10', '10'],
      ])
    })

    test('skip charges nothing and tells nothing, also when it answers late', async () => {
      const { store } = clockAt(0)
      const skip = (_request: unknown, context: { header(name: string): string | undefined }) =>
        context.header('x-internal') === 'yes'
      const app = await start({
        routes: {
          '/now': { limiters: [{ name: 'now', store, limit: 1, window: '10s', skip }] },
          '/late': { limiters: [{ name: 'late', store, limit: 1, window: '10s', skip: async (r, c) => skip(r, c) }] },
        },
      })
      for (const path of ['/now', '/late']) {
        for (let n = 0; n < 3; n++) {
          const response = await request(app.server).get(path).set('X-Internal', 'yes')
          expect(response.status).toBe(200)
          expect(Object.keys(response.headers).filter((field) => /ratelimit|retry/.test(field))).toEqual([])
        }
        expect(await statuses(app, path, 2)).toEqual([200, 429])
      }
    })

    const failing = () => {
      throw new Error('user function')
    }
    const rejecting = async () => failing()
    test.each([
      ['an undefined cost', { cost: () => undefined as never }, 'INVALID_COST'],
      ['a late undefined cost', { cost: async () => undefined as never }, 'INVALID_COST'],
      ['a promised key', { key: (async () => 'k') as never }, 'INVALID_KEY'],
      ['a limit function that returns NaN', { limit: () => Number.NaN }, 'INVALID_POLICY'],
      ['a cost that throws', { cost: failing }, undefined],
      ['a cost that rejects', { cost: rejecting }, undefined],
      ['a key that throws', { key: failing }, undefined],
      ['a skip that throws', { skip: failing }, undefined],
      ['a skip that rejects', { skip: rejecting }, undefined],
    ])('%s reaches the error handler once and charges nothing', async (_what, bad, code) => {
      const { store } = clockAt(0)
      const good = { name: 'api', store, limit: 1, window: '10s' as const, key: everyone() }
      const app = await start({
        routes: { '/bad': { limiters: [{ ...good, ...bad }] }, '/good': { limiters: [good] } },
      })
      const response = await request(app.server).get('/bad')
      expect([response.status, response.text]).toEqual([500, `error ${code}`])
      expect(app.errors).toHaveLength(1)
      if (code) expect((app.errors[0] as Error).message).toMatch(/^policy "api": /)
      expect(app.ran).toEqual([])
      expect(await statuses(app, '/good', 1)).toEqual([200])
    })

    test.each([
      ['throws', failing],
      ['rejects', rejecting],
      ['returns nothing', (() => undefined) as never],
    ])('a responder or body that %s reaches the error handler once', async (_what, bad) => {
      const { store } = clockAt(0)
      const app = await start({
        routes: {
          '/responder': { limiters: [{ name: 'a', store, limit: 0, window: '10s', respond: bad }] },
          '/body': { limiters: [{ name: 'b', store, limit: 0, window: '10s', respond: reject({ body: bad }) }] },
        },
      })
      expect(await statuses(app, '/responder', 1)).toEqual([500])
      expect(await statuses(app, '/body', 1)).toEqual([500])
      expect(app.errors).toHaveLength(2)
      expect(app.ran).toEqual([])
    })

    test('a store that fails reaches the error handler', async () => {
      const store = { ...memoryStore(), decide: async () => Promise.reject(new Error('store')) } as never
      const app = await start({ routes: { '/': { limiters: [{ store, limit: 1, window: '10s' }] } } })
      expect(await statuses(app, '/', 1)).toEqual([500])
      expect(app.errors).toHaveLength(1)
    })

    test('a store that answers late is waited for', async () => {
      const { store } = clockAt(0)
      const late = {
        decide: async (ask: never) => {
          await null
          return store.decide(ask)
        },
      } as never
      const app = await start({
        routes: { '/': { limiters: [{ name: 'api', store: late, limit: 1, window: '10s' }] } },
      })
      expect(await statuses(app, '/', 2)).toEqual([200, 429])
      expect(app.verdicts).toMatchObject([{ allowed: true }])
    })

    test('X-Forwarded-For changes nothing unless the framework trusts its sender', async () => {
      const send = async (app: RunningApp) => {
        const seen: number[] = []
        for (let n = 1; n <= 3; n++) {
          seen.push((await request(app.server).get('/').set('X-Forwarded-For', `198.51.100.${n}`)).status)
        }
        return seen
      }
      const routes = () => ({ '/': { limiters: [{ store: memoryStore(), limit: 1, window: '10s' as const }] } })
      expect(await send(await start({ routes: routes() }))).toEqual([200, 429, 429])
      expect(await send(await start({ routes: routes(), trustProxy: true }))).toEqual([200, 200, 200])
    })

    test('a client is the same on IPv4 and on IPv4 in IPv6 clothing, behind a trusted proxy', async () => {
      const app = await start({
        trustProxy: true,
        routes: { '/': { limiters: [{ store: memoryStore(), limit: 1, window: '10s' }] } },
      })
      const from = async (address: string) =>
        (await request(app.server).get('/').set('X-Forwarded-For', address)).status
      expect(await from('198.51.100.7')).toBe(200)
      expect(await from('::ffff:198.51.100.7')).toBe(429)
      expect(await from('::ffff:c633:6407')).toBe(429)
      expect(await from('2001:db8:1:2::1')).toBe(200)
      expect(await from('2001:db8:1:2:3:4:5:6')).toBe(429)
      expect(await from('2001:db8:1:3::1')).toBe(200)
    })

    test('a blocked client is told when the block ends, and no quota', async () => {
      const time = clockAt(0)
      const { store } = time
      const app = await start({
        routes: { '/': { limiters: [{ name: 'api', store, limit: 9, window: '10s', key: everyone() }] } },
      })
      const limiter = limiterOf(app)
      await limiter.block('everyone', { for: 90_000, reason: 'scraping' })
      const response = await request(app.server).get('/')
      expect(response.status).toBe(429)
      expect(response.headers['retry-after']).toBe('90')
      expect(Object.keys(response.headers).filter((field) => /ratelimit/.test(field))).toEqual([])
      expect(response.body).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
        title: 'Request cannot be satisfied due to abnormal usage',
        status: 429,
      })
      time.now += 89_999
      expect(await statuses(app, '/', 1)).toEqual([429])
      time.now += 1
      expect(await statuses(app, '/', 1)).toEqual([200])
      await limiter.block('everyone', { for: 90_000, reason: '' })
      await limiter.unblock('everyone')
      expect(await statuses(app, '/', 1)).toEqual([200])
    })

    test('a queueing limit spaces requests out', async () => {
      const { store } = clockAt(0)
      const limits = [leakyBucket({ leak: 10, every: '1s', capacity: 3, queue: true })]
      const app = await start({ routes: { '/': { limiters: [{ name: 'line', store, limits }] } } })
      const startedAt = performance.now()
      const responses = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const { status } = await request(app.url).get('/')
          return { status, after: performance.now() - startedAt }
        }),
      )
      const admitted = responses.filter(({ status }) => status === 200).map(({ after }) => after)
      expect(admitted).toHaveLength(3)
      admitted.sort((a, b) => a - b)
      // Timers may fire a hair early by the performance clock.
      for (const [i, after] of admitted.entries()) expect(after).toBeGreaterThanOrEqual(i * 100 - 5)
    })

    test('a client that leaves the line gives its charge back and never reaches the handler', async () => {
      // The clock stands still, so that only the giving back makes room.
      const { store } = clockAt(0)
      const limits = [leakyBucket({ leak: 1, every: '700ms', capacity: 2, queue: true })]
      const app = await start({ routes: { '/': { limiters: [{ name: 'line', store, limits, key: everyone() }] } } })
      const room = async () => (await limiterOf(app).peek('everyone')).remaining
      expect(await statuses(app, '/', 1)).toEqual([200])
      const leave = await hangingGet(app.url)
      await expect.poll(room).toBe(0)
      expect(await statuses(app, '/', 1)).toEqual([429])
      leave()
      await expect.poll(room).toBe(1)
      expect(await statuses(app, '/', 1)).toEqual([200])
      expect(app.ran).toHaveLength(2)
      expect(app.errors).toEqual([])
    })

    test.each([
      ['waits in no line', leakyBucket({ leak: 1, every: '1h', capacity: 2, queue: true }), []],
      ['holds no place', concurrency({ limit: 2 }), ['/']],
    ])('a client that has left before the decision %s', async (_what, limit, ran) => {
      const { store } = clockAt(0)
      let asked = 0
      const untilGone = (_request: unknown, { response }: HttpContext) =>
        new Promise<false>((resolve) => {
          asked++
          response.on('close', () => setImmediate(resolve, false))
        })
      const app = await start({
        routes: {
          '/': {
            limiters: [{ name: 'line', store, limits: [limit], key: everyone(), skip: untilGone }],
            // Nothing but the client's leaving can free a place here.
            handler: () => new Promise(() => {}),
          },
        },
      })
      // Someone is there already, so that a line has to be waited in.
      await limiterOf(app).consume('everyone')
      const leave = await hangingGet(app.url)
      await expect.poll(() => asked).toBe(1)
      leave()
      await sleep(50)
      expect((await limiterOf(app).peek('everyone')).remaining).toBe(1)
      expect(app.ran).toEqual(ran)
    })

    test('a place in flight is freed when the response is finished, and when the client leaves', async () => {
      let release = () => {}
      const app = await start({
        routes: {
          '/': {
            limiters: [{ name: 'busy', limits: [concurrency({ limit: 1 })], key: everyone() }],
            handler: () => new Promise<string>((resolve) => (release = () => resolve('done'))),
          },
        },
      })
      const first = fetch(app.url)
      await expect.poll(() => app.ran.length).toBe(1)
      const refused = await fetch(app.url)
      expect(refused.status).toBe(429)
      expect(refused.headers.get('ratelimit-policy')).toBe('"busy";q=1;qu="concurrent-requests"')
      release()
      expect((await first).status).toBe(200)

      const leave = await hangingGet(app.url)
      await expect.poll(() => app.ran.length).toBe(2)
      expect((await fetch(app.url)).status).toBe(429)
      leave()
      await sleep(50)
      const last = fetch(app.url)
      await expect.poll(() => app.ran.length).toBe(3)
      release()
      expect((await last).status).toBe(200)
    })

    test('a place in flight is renewed for as long as the response takes', async () => {
      const time = clockAt(0)
      const { store } = time
      let release = () => {}
      const app = await start({
        routes: {
          '/': {
            limiters: [{ name: 'busy', store, limits: [concurrency({ limit: 1, ttl: '90ms' })], key: everyone() }],
            handler: () => new Promise<string>((resolve) => (release = () => resolve('done'))),
          },
        },
      })
      const heldForMs = async () => (await limiterOf(app).peek('everyone')).resetAfterMs
      const first = fetch(app.url)
      await expect.poll(() => app.ran.length).toBe(1)
      for (let n = 0; n < 3; n++) {
        time.now += 60
        await expect.poll(heldForMs).toBe(90)
      }
      expect((await fetch(app.url)).status).toBe(429)
      release()
      expect((await first).status).toBe(200)
      await expect.poll(heldForMs).toBe(0)
    })

    test('a place is freed when the handler fails', async () => {
      const app = await start({
        routes: {
          '/': {
            limiters: [{ name: 'busy', limits: [concurrency({ limit: 1 })], key: everyone() }],
            handler: () => Promise.reject(Object.assign(new Error('handler'), { code: 'HANDLER' })),
          },
        },
      })
      expect(await statuses(app, '/', 3)).toEqual([500, 500, 500])
      expect(app.errors).toHaveLength(3)
    })
  })
}

/** The first limiter of the app, by the one face that all have. */
function limiterOf(app: RunningApp): Limiter<string> {
  return app.limiters[0] as unknown as Limiter<string>
}

/** Sends a GET over a socket of its own; the returned function hangs up. */
async function hangingGet(url: string): Promise<() => void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  return () => socket.destroy()
}
