import {
  byHeader,
  byIp,
  byUser,
  concurrency,
  everyone,
  type HttpContext,
  ipRanges,
  list,
  memoryStore,
  queue,
  reject,
  shadow,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnyOptions, AppFactory, RunningApp } from './support/app.js'
import { run } from './support/app.js'

const QUOTA = /ratelimit|retry/

/** Clients on lists, in every adapter. */
export function listsContract(name: string, factory: AppFactory): void {
  describe(name, () => {
    const running: RunningApp[] = []
    const start = async (options: AnyOptions) => {
      const verdicts: Verdict[] = []
      const onVerdict = (_request: unknown, verdict: Verdict) => verdicts.push(verdict)
      const limiters = [{ limit: 1, window: '1h', key: everyone(), onVerdict, ...options } as AnyOptions]
      const app = await run(factory, { trustProxy: true, routes: { '/': { limiters } } })
      running.push(app)
      const get = (headers: Record<string, string> = {}, from = '198.51.100.9') =>
        request(app.server)
          .get('/')
          .set({ 'x-forwarded-for': from, ...headers })
      return { app, verdicts, get }
    }
    const quotaFields = (headers: Record<string, string>) => Object.keys(headers).filter((field) => QUOTA.test(field))
    afterEach(async () => {
      for (const app of running.splice(0)) await app.close()
    })

    test('a denied client gets 403 as a problem, without a charge or quota', async () => {
      const { app, verdicts, get } = await start({ deny: ipRanges(['192.0.2.0/24']) })
      const response = await get({}, '192.0.2.7')
      expect(response.status).toBe(403)
      expect(response.headers).toMatchObject({
        'content-type': 'application/problem+json; charset=utf-8',
        'cache-control': 'no-store',
      })
      expect(JSON.parse(response.text)).toEqual({ type: 'about:blank', title: 'Forbidden', status: 403 })
      expect(quotaFields(response.headers)).toEqual([])
      expect(verdicts).toEqual([
        expect.objectContaining({
          allowed: false,
          kind: 'listed',
          reason: 'denied',
          retryAfterMs: undefined,
          cost: 0,
          limits: [],
          list: { effect: 'deny', kind: 'ip', list: 'ipRanges', reason: '', expiresAt: undefined },
        }),
      ])
      expect([app.ran, app.errors]).toEqual([[], []])
      expect((await get()).status).toBe(200)
      expect((await get()).status).toBe(429)
    })

    test('an allowed client is not charged and gets no quota, and its verdict says so', async () => {
      const { app, verdicts, get } = await start({ allow: [ipRanges(['2001:db8::/32'])] })
      for (let i = 0; i < 3; i++) {
        const response = await get({}, '2001:db8::1')
        expect([response.status, response.text]).toEqual([200, 'done'])
        expect(quotaFields(response.headers)).toEqual([])
      }
      expect(verdicts).toHaveLength(3)
      expect(app.verdicts.at(-1)).toMatchObject({
        allowed: true,
        kind: 'listed',
        reason: undefined,
        cost: 0,
        list: { effect: 'allow', kind: 'ip' },
      })
      expect((await get()).status).toBe(200)
      expect((await get()).status).toBe(429)
    })

    test('the narrower of two ranges decides between allow and deny', async () => {
      const { get } = await start({
        limit: 0,
        allow: ipRanges(['192.0.2.7', '203.0.113.0/24', '198.51.100.0/24']),
        deny: ipRanges(['192.0.2.0/24', '203.0.113.7', '198.51.100.0/24']),
      })
      expect((await get({}, '192.0.2.7')).status).toBe(200)
      expect((await get({}, '::ffff:192.0.2.7')).status).toBe(200)
      expect((await get({}, '192.0.2.8')).status).toBe(403)
      expect((await get({}, '203.0.113.7')).status).toBe(403)
      expect((await get({}, '203.0.113.8')).status).toBe(200)
      // Equally narrow in both lists.
      expect((await get({}, '198.51.100.9')).status).toBe(403)
    })

    test('an allowed identity of one kind outweighs a denied one of another kind', async () => {
      const { get } = await start({
        limit: 0,
        key: byUser((_request, context: HttpContext) => context.header('x-user')),
        allow: list({ user: ['ann'], 'header:x-api-key': ['secret'] }),
        deny: [ipRanges(['192.0.2.7']), list({ user: ['ann', 'bob'] })],
      })
      const status = async (headers: Record<string, string>, from?: string) => (await get(headers, from)).status
      expect(await status({ 'x-api-key': 'secret' }, '192.0.2.7')).toBe(200)
      expect(await status({ 'x-api-key': 'secret', 'x-user': 'bob' })).toBe(200)
      expect(await status({ 'x-api-key': 'other', 'x-user': 'eve' }, '192.0.2.7')).toBe(403)
      // One kind, equally narrow: denied.
      expect(await status({ 'x-user': 'ann' })).toBe(403)
      expect(await status({ 'x-user': 'bob' })).toBe(403)
      expect(await status({ 'x-user': 'eve' })).toBe(429)
    })

    test('a client on a list needs no key', async () => {
      const { get } = await start({
        key: byUser((_request, context: HttpContext) => context.header('x-user')),
        allow: ipRanges(['192.0.2.7']),
        deny: ipRanges(['192.0.2.0/24']),
      })
      expect((await get({}, '192.0.2.7')).status).toBe(200)
      expect((await get({}, '192.0.2.8')).status).toBe(403)
      expect((await get()).status).toBe(400)
    })

    test("the address is the framework's, whatever an untrusted header says", async () => {
      const app = await run(factory, {
        routes: { '/': { limiters: [{ limit: 1, window: '1h', allow: ipRanges(['192.0.2.7']) }] } },
      })
      running.push(app)
      const get = () => request(app.server).get('/').set('x-forwarded-for', '192.0.2.7')
      expect((await get()).status).toBe(200)
      expect((await get()).status).toBe(429)
    })

    test('functions decide like lists, and results other than true and false are an error', async () => {
      const { app, get } = await start({
        limit: 0,
        allow: (_request: unknown, context: HttpContext) => context.header('x-probe') === 'yes',
        deny: [(_request: unknown, context: HttpContext) => context.header('x-bad') as never],
      })
      expect((await get({ 'x-probe': 'yes', 'x-bad': 'yes' })).status).toBe(200)
      await get({ 'x-bad': 'yes' })
      expect(app.errors).toEqual([expect.objectContaining({ code: 'INVALID_POLICY' })])
    })

    test('a deny list can have its own responder, else the limiter’s responds', async () => {
      const own = await start({ deny: { lists: ipRanges(['192.0.2.0/24']), respond: shadow({ body: 'fine' }) } })
      const hidden = await own.get({}, '192.0.2.7')
      expect([hidden.status, hidden.text]).toEqual([200, 'fine'])
      const common = await start({ deny: ipRanges(['192.0.2.0/24']), respond: reject({ status: 503, body: 'no' }) })
      const refused = await common.get({}, '192.0.2.7')
      expect([refused.status, refused.text]).toEqual([403, 'no'])
      expect(own.app.ran).toEqual([])
    })

    test('a listed client neither waits, nor takes permits, nor counts by its outcome', async () => {
      const { get } = await start({
        limit: undefined,
        window: undefined,
        limits: [concurrency({ limit: 1 }), slidingLog({ limit: 1, window: '1h' })],
        count: { only: 'success' },
        respond: queue({ maxWait: '1h' }),
        allow: ipRanges(['192.0.2.7']),
        deny: ipRanges(['192.0.2.8']),
      } as never)
      for (let i = 0; i < 3; i++) {
        expect((await get({}, '192.0.2.7')).status).toBe(200)
        expect((await get({}, '192.0.2.8')).status).toBe(403)
      }
      expect((await get()).status).toBe(200)
    })

    test('a skipped request is on no list, and report mode denies no request', async () => {
      const skipping = await start({ limit: 0, skip: () => true, deny: ipRanges(['192.0.2.7']) })
      expect((await skipping.get({}, '192.0.2.7')).status).toBe(200)
      const reporting = await start({
        limit: 0,
        enforce: { mode: 'report' },
        deny: ipRanges(['192.0.2.7']),
        allow: ipRanges(['192.0.2.8']),
      })
      expect((await reporting.get({}, '192.0.2.7')).status).toBe(200)
      expect((await reporting.get({}, '192.0.2.8')).status).toBe(200)
      expect(reporting.verdicts).toMatchObject([
        { allowed: false, reason: 'denied', reported: true },
        { allowed: true, kind: 'listed', reported: true },
      ])
    })

    test('enforce.percent denies the same clients that it limits', async () => {
      const ofLimits = await start({ limit: 0, key: byIp(), enforce: { percent: 50 } })
      const ofLists = await start({
        limit: 0,
        key: byIp(),
        enforce: { percent: 50 },
        deny: ipRanges(['192.0.2.0/24', '2001:db8::/32']),
      })
      for (let i = 0; i < 20; i++) {
        for (const from of [`192.0.2.${i}`, `2001:db8:${i}::1`]) {
          const isLimited = (await ofLimits.get({}, from)).status === 429
          expect((await ofLists.get({}, from)).status).toBe(isLimited ? 403 : 200)
        }
      }
    })

    test('the lists of a store apply to every policy on it, beside those of the policy', async () => {
      const store = memoryStore({
        allow: ipRanges(['192.0.2.7']),
        deny: [ipRanges(['192.0.2.0/24']), list({ user: ['eve'] })],
      })
      const one = await start({ store, name: 'one', limit: 0 })
      const other = await start({ store, name: 'other', limit: 0, allow: ipRanges(['192.0.2.8']) })
      for (const { get } of [one, other]) {
        expect((await get({}, '192.0.2.7')).status).toBe(200)
        expect((await get({}, '192.0.2.9')).status).toBe(403)
      }
      expect((await one.get({}, '192.0.2.8')).status).toBe(403)
      expect((await other.get({}, '192.0.2.8')).status).toBe(200)
    })

    test('header values in lists are compared as they are counted', async () => {
      const counted = await start({
        limit: 0,
        key: byHeader('x-api-key', { secret: false }),
        allow: list({ 'header:x-api-key': ['k-1'] }),
      })
      expect((await counted.get({ 'x-api-key': 'k-1' })).status).toBe(200)
      expect((await counted.get({ 'x-api-key': 'k-2' })).status).toBe(429)
      const authorized = await start({ limit: 0, allow: list({ 'header:authorization': ['Bearer t'] }) })
      expect((await authorized.get({ authorization: 'bearer   t' })).status).toBe(200)
      expect((await authorized.get({ authorization: 'Bearer T' })).status).toBe(429)
    })
  })
}
