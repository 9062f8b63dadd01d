import {
  byCookie,
  byCredentials,
  byHeader,
  byIp,
  byUser,
  everyone,
  type HttpContext,
  keyed,
  list,
  memoryStore,
} from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import { warningsDuring } from '../support/process-events.js'
import { type AnyOptions, type AppFactory, type AppSpec, type RunningApp, run } from './support/app.js'

const keyOf = (value: unknown) => ({ key: keyed('account', () => value as never) })

/** Faults of requests, with the options of the limiter and the headers of the request. */
const FAULTS: readonly (readonly [string, AnyOptions, Record<string, string>])[] = [
  ['no API key', { key: byHeader('x-api-key') }, {}],
  ['no user', { key: byUser(() => undefined) }, {}],
  ['an empty key', keyOf(''), {}],
  ['a key that is an object', keyOf({}), {}],
  ['a key that is an array', keyOf(['a']), {}],
  ['a key that is NaN', keyOf(Number.NaN), {}],
  ['a key that is a symbol', keyOf(Symbol('a')), {}],
  ['a key that is false', { ...keyOf(false), anonymous: 'skip' }, {}],
  ['cookies that parsers read differently', { key: byCookie('sid') }, { cookie: 'sid =a; sid=b' }],
  ['more cookies of a name than are read', { key: byCookie('sid') }, { cookie: 'sid =a;'.repeat(17) }],
  ['a token in several parts', { key: byCredentials() }, { authorization: 'Basic d Tpw' }],
  ['a made-up scheme', { key: byCredentials() }, { authorization: 'x1 token' }],
  [
    'credentials of more parameters than are read',
    { key: byHeader('authorization') },
    { authorization: `Digest ${'a=b '.repeat(100)}` },
  ],
  [
    'cookies of a deny list that parsers read differently',
    { key: byIp(), deny: list({ 'cookie:sid': ['b'] }) },
    { cookie: 'sid =a; sid=b' },
  ],
  ['a cost of -1', { cost: () => -1 }, {}],
  ['a cost of NaN', { cost: () => Number.NaN }, {}],
  ['an infinite cost', { cost: () => Number.POSITIVE_INFINITY }, {}],
  ['a fractional cost', { cost: () => 1.5 }, {}],
  ['a cost beyond 2^53', { cost: () => 2 ** 53 }, {}],
  ['a late cost of NaN', { cost: async () => Number.NaN }, {}],
]

/** Requests that cannot be counted because of a fault, in every adapter. */
export function invalidContract(name: string, factory: AppFactory): void {
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

    /** A limiter with a fault, and one that shows the charges of the fault. */
    const startWith = (bad: AnyOptions) => {
      const good = { name: 'internal-policy', store: memoryStore(), limit: 1, window: '1h', key: everyone() } as const
      return start({ routes: { '/bad': { limiters: [{ ...good, ...bad }] }, '/good': { limiters: [good] } } })
    }

    test.each(FAULTS)('%s gets 400 without internals, and charges nothing', async (_what, bad, headers) => {
      const verdicts: unknown[] = []
      const app = await startWith({ ...bad, onVerdict: (_request, verdict) => verdicts.push(verdict) })
      const response = await request(app.server).get('/bad').set(headers)
      expect(response.status).toBe(400)
      expect(response.headers).toMatchObject({
        'content-type': 'application/problem+json; charset=utf-8',
        'cache-control': 'no-store',
      })
      expect(JSON.parse(response.text)).toEqual({ type: 'about:blank', title: 'Bad Request', status: 400 })
      expect(Object.keys(response.headers).filter((field) => /ratelimit|retry/.test(field))).toEqual([])
      expect([app.ran, app.errors, verdicts]).toEqual([[], [], []])
      expect((await request(app.server).get('/good')).status).toBe(200)
    })

    test.each(FAULTS)('with onInvalid: pass, %s reaches the error handler', async (_what, bad, headers) => {
      const app = await startWith({ ...bad, onInvalid: 'pass' })
      await request(app.server).get('/bad').set(headers)
      expect(app.errors).toEqual([
        expect.objectContaining({
          message: 'Bad Request',
          status: 400,
          statusCode: 400,
          expose: true,
          cause: expect.objectContaining({ message: expect.stringMatching(/^policy "internal-policy": /) }),
        }),
      ])
      expect(app.ran).toEqual([])
      expect((await request(app.server).get('/good')).status).toBe(200)
    })

    test.each(FAULTS)('%s goes on without a limit in report mode', async (_what, bad, headers) => {
      const app = await startWith({ ...bad, enforce: { mode: 'report' } })
      const warnings = await warningsDuring(async () => {
        expect((await request(app.server).get('/bad').set(headers)).status).toBe(200)
      })
      expect(warnings).toEqual([
        expect.objectContaining({
          code: 'SLUICE_INVALID_REQUEST',
          message: expect.stringContaining('was not limited'),
        }),
      ])
      expect((await request(app.server).get('/good')).status).toBe(200)
    })

    test('a request without a user gets 401 if there is a challenge', async () => {
      const app = await startWith({ key: byUser(() => undefined, { challenge: 'Bearer realm="api"' }) })
      const response = await request(app.server).get('/bad')
      expect([response.status, response.headers['www-authenticate']]).toEqual([401, 'Bearer realm="api"'])
      expect(JSON.parse(response.text)).toEqual({ type: 'about:blank', title: 'Unauthorized', status: 401 })
    })

    test('anonymous requests are not invalid', async () => {
      const app = await startWith({ key: byUser(() => undefined, { challenge: 'Bearer' }), anonymous: 'by-ip' })
      expect((await request(app.server).get('/bad')).status).toBe(200)
      expect((await request(app.server).get('/bad')).status).toBe(429)
    })

    test('each fault causes one warning with its details, however many requests have it', async () => {
      const app = await startWith({
        key: keyed('account', (_request, context: HttpContext) => context.header('x-account')),
        cost: (_request, context: HttpContext) => Number(context.header('x-cost')),
      })
      const warnings = await warningsDuring(async () => {
        for (let n = 0; n < 3; n++) {
          await request(app.server).get('/bad').set('x-cost', '1')
          await request(app.server)
            .get('/bad')
            .set('x-cost', String(-1 - n))
            .set('x-account', `ann-${n}`)
        }
      })
      expect(warnings.map(({ message }) => message)).toEqual([
        expect.stringMatching(/^policy "internal-policy": key: expected a non-empty string or a number, got undefined/),
        expect.stringMatching(/^policy "internal-policy": cost: expected a whole number of at least 0, got -1; /),
      ])
    })

    test('an invalid address from a proxy is the client’s mistake', async () => {
      const app = await start({
        trustProxy: true,
        global: [{ name: 'internal-policy', limit: 9, window: '1h', key: byIp() }],
        routes: { '/': {} },
      })
      const response = await request(app.server).get('/').set('x-forwarded-for', 'nonsense')
      expect([response.status, app.errors, app.ran]).toEqual([400, [], []])
    })
  })
}
