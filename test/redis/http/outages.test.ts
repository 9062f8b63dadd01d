import { setTimeout as sleep } from 'node:timers/promises'
import {
  degrade,
  delay,
  everyone,
  gcra,
  perMinute,
  queue,
  type Responder,
  redisStore,
  reject,
  shadow,
  tarpit,
  throttle,
} from '@sluice/core'
import { Redis } from 'ioredis'
import request, { type Response } from 'supertest'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { type AnyOptions, type RunningApp, run } from '../../http/support/app.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const RESPONDERS: Record<string, Responder> = {
  reject: reject(),
  'reject with 429': reject({ status: 429 }),
  shadow: shadow({ body: { ok: true } }),
  degrade: degrade(),
  throttle: throttle({ bytesPerSecond: 1 }),
  tarpit: tarpit({ for: '1h' }),
  delay: delay({ max: '1h' }),
  queue: queue({ maxWait: '1h' }),
  'a custom responder': () => 'proceed',
}

const REDUCED =
  '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints","status":503}'

describe.each(Object.entries(FRAMEWORKS))('%s, with no Redis there', (_name, factory) => {
  const open: (() => unknown)[] = []
  let port: number
  let store: ReturnType<typeof redisStore>
  beforeEach(async () => {
    port = await freePort()
    const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 })
    client.on('error', () => {})
    store = redisStore(client)
    open.push(() => client.disconnect())
    open.push(() => store.close())
  })
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close()
  })

  async function start(options: AnyOptions): Promise<RunningApp> {
    const routes = { '/': { limiters: [{ name: 'api', store, ...options }] } }
    const app = await run(factory, { routes })
    open.push(() => app.close())
    return app
  }
  const ask = (app: RunningApp) => request(app.server).get('/').timeout(5000)

  function expectNoQuota({ headers }: Response): void {
    expect(Object.keys(headers).filter((name) => /ratelimit/i.test(name))).toEqual([])
  }

  const ALL_FORMS = { headers: ['draft-11', 'legacy'] } as const

  test('limits hold in each process without Redis: responses report no quota, and refusals a retry time', async () => {
    const app = await start({ limits: [gcra({ limit: 2, window: '20s' })], ...ALL_FORMS })
    for (let n = 0; n < 2; n++) {
      const response = await ask(app)
      expect([response.status, response.text]).toEqual([200, 'done'])
      expectNoQuota(response)
      expect(response.headers).not.toHaveProperty('retry-after')
    }
    const response = await ask(app)
    expect([response.status, response.headers['retry-after']]).toEqual([429, '10'])
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8')
    expect(JSON.parse(response.text)).toMatchObject({ status: 429, 'violated-policies': ['api'] })
    expectNoQuota(response)
    expect([app.ran.length, app.errors]).toEqual([2, []])
    expect(app.verdicts).toMatchObject([{ kind: 'unavailable', remaining: 1 }, { kind: 'unavailable' }])
  })

  test('a share of the limits holds in each process with unavailable.share', async () => {
    const app = await start({ limit: 8, window: '1m', unavailable: { share: 0.25 } })
    const statuses = []
    for (let n = 0; n < 3; n++) statuses.push((await ask(app)).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  test('all requests are admitted without rate limit fields with unavailable.decide "allow"', async () => {
    const app = await start({ limit: 1, window: '1m', unavailable: { decide: 'allow' }, ...ALL_FORMS })
    for (let n = 0; n < 3; n++) {
      const response = await ask(app)
      expect(response.status).toBe(200)
      expectNoQuota(response)
      expect(response.headers).not.toHaveProperty('retry-after')
    }
    expect(app.verdicts).toMatchObject(new Array(3).fill({ kind: 'unavailable', allowed: true, limits: [] }))
  })

  test('all requests are refused with 503 with unavailable.decide "deny"', async () => {
    const app = await start({ limit: 1, window: '1m', unavailable: { decide: 'deny' }, ...ALL_FORMS })
    const response = await ask(app)
    expect([response.status, response.headers['retry-after'], response.text]).toEqual([503, '2', REDUCED])
    expect(response.headers).toMatchObject({
      'content-type': 'application/problem+json; charset=utf-8',
      'cache-control': 'no-store',
      'content-length': String(REDUCED.length),
    })
    expectNoQuota(response)
    const plain = await ask(app).set('accept', 'text/plain')
    expect([plain.status, plain.text]).toEqual([503, 'At reduced capacity: try again in 2 s.\n'])
    expect([app.ran, app.errors]).toEqual([[], []])
  })

  test('an outage with "deny" is a 503 response whatever the responder', async () => {
    for (const [responder, respond] of Object.entries(RESPONDERS)) {
      const app = await start({ limit: 1, window: '1m', unavailable: { decide: 'deny' }, respond })
      const { status, text } = await ask(app)
      expect([responder, status, text, app.ran]).toEqual([responder, 503, REDUCED, []])
    }
  })

  test('requests that wait in a queue when an outage begins receive 503 with "deny"', async () => {
    const redis = await startRedis({ port })
    open.push(() => redis.stop())
    const otherwise = degrade()
    for (const respond of [delay({ max: '1h', otherwise }), queue({ maxWait: '1h', otherwise })]) {
      await redis.restart()
      const app = await start({ limits: [gcra({ limit: 1, window: 400 })], unavailable: { decide: 'deny' }, respond })
      await until('Redis decides', async () => (await ask(app)).status === 200)
      const waiting = [ask(app), ask(app)].map((response) => response.then(({ status, text }) => [status, text]))
      await sleep(100)
      redis.kill('SIGKILL')
      expect(await Promise.all(waiting)).toEqual([
        [503, REDUCED],
        [503, REDUCED],
      ])
      expect(app.ran).toHaveLength(1)
    }
  })

  test('a refusal during an outage has the body that reject() sets', async () => {
    for (const respond of [
      reject({ body: (_request, { reason }) => ({ error: reason }) }),
      delay({ otherwise: reject({ body: { error: 'unavailable' } }) }),
    ]) {
      const response = await ask(await start({ limit: 1, window: '1m', unavailable: { decide: 'deny' }, respond }))
      expect([response.status, response.text]).toEqual([503, '{"error":"unavailable"}'])
    }
  })

  test('requests pass during an outage with enforce mode "report"', async () => {
    const app = await start({ limit: 1, window: '1m', unavailable: { decide: 'deny' }, enforce: { mode: 'report' } })
    expect((await ask(app)).status).toBe(200)
    expect(app.verdicts).toMatchObject([{ kind: 'unavailable', allowed: false, reported: true }])
  })

  test('requests over the limit wait for their turn during an outage with delay()', async () => {
    const app = await start({ limits: [gcra({ limit: 1, window: 200 })], key: everyone(), respond: delay() })
    const responses = await Promise.all([ask(app), ask(app), ask(app)])
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  test('requests that do not count are refunded during an outage', async () => {
    const app = await start({ limit: 1, window: '1m', count: { only: (status) => status >= 400 } })
    for (let n = 0; n < 3; n++) expect((await ask(app)).status).toBe(200)
  })

  test('responses report the quota again once Redis is up', async () => {
    const app = await start({ limits: [perMinute(5)] })
    for (let n = 0; n < 4; n++) await ask(app)
    const redis = await startRedis({ port })
    open.push(() => redis.stop())
    const response = await until('Redis decides', async () => {
      const seen = await ask(app)
      return seen.headers.ratelimit !== undefined && seen
    })
    expect(response.headers.ratelimit).toMatch(/^"api";r=4;t=\d+$/)
    expect(app.errors).toEqual([])
  })
})
