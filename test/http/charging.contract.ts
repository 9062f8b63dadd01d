import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import {
  byHeader,
  everyone,
  fixedWindow,
  gcra,
  type IdentityByKind,
  type Limiter,
  memoryStore,
  type Store,
  type Verdict,
} from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { unhandledDuring, warningsDuring } from '../support/process-events.js'
import { until } from '../support/until.js'
import type { AnyOptions } from './support/app.js'
import type { Answering, BodyApp, BodyAppFactory } from './support/body-apps.js'

interface Running extends BodyApp {
  readonly url: string
  readonly port: number
}

/** What happens to charges after the decision, the same in every framework. */
export function chargingContract(name: string, factory: BodyAppFactory): void {
  describe(name, () => {
    const running: BodyApp[] = []
    afterEach(async () => {
      for (const { server } of running.splice(0)) {
        server.close()
        server.closeAllConnections()
      }
    })
    const start = async (options: AnyOptions, answer: Answering = done): Promise<Running> => {
      const app = await factory({ key: everyone(), ...options }, answer)
      running.push(app)
      app.server.listen(0, '127.0.0.1')
      await once(app.server, 'listening')
      const { port } = app.server.address() as AddressInfo
      return { ...app, port, url: `http://127.0.0.1:${port}` }
    }
    const left = async (app: BodyApp) => (await app.limiter.peek('everyone')).remaining
    /** A store whose clock stands still: nothing but settling gives anything back. */
    const still = () => memoryStore({ clock: () => 1_000_000 })
    const isFailure = (status: number) => status >= 400

    describe('counting by outcome', () => {
      const login = (store: Store = still()): AnyOptions => ({
        name: 'login',
        store,
        limit: 2,
        window: '15m',
        count: isFailure,
      })

      test('4 good requests at once all pass a limit of 2 failures', async () => {
        const app = await start(login(), slowly(200))
        const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await fetch(app.url)).status))
        expect(statuses).toEqual([200, 200, 200, 200])
        expect(await left(app)).toBe(2)
      })

      test('of many bad requests at once no more than the limit reach the handler', async () => {
        const app = await start(login(), slowly(401))
        const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await fetch(app.url)).status))
        expect(statuses.sort()).toEqual([401, 401, ...new Array(10).fill(429)])
        expect(app.ran).toHaveLength(2)
        expect(await left(app)).toBe(0)
      })

      test('good and bad at once: the bad count, the good do not, whatever their order', async () => {
        const app = await start(login(), async ({ header }) => {
          await pause(10)
          return { status: Number(header('x-status')), text: '' }
        })
        const asked = [200, 401, 200, 200, 200, 200, 401, 200, 200]
        const statuses = await Promise.all(
          asked.map(async (status) => (await fetch(app.url, { headers: { 'x-status': String(status) } })).status),
        )
        const failed = statuses.filter((status) => status === 401).length
        expect(failed).toBeLessThanOrEqual(2)
        expect(await left(app)).toBe(2 - failed)
        // Everything that was sent before the limit was used up has passed.
        if (failed < 2) expect(statuses).toEqual(asked)
      })

      test.each<['success' | 'failure', readonly number[]]>([
        ['success', [200, 206, 304]],
        ['failure', [400, 401, 404, 416]],
      ])('count: "%s" counts %j', async (count, counted) => {
        const limit = 20
        const app = await start({ ...login(), limit, count }, async ({ header }) => ({
          status: Number(header('x-status')),
          text: '',
        }))
        let spent = 0
        for (const status of [200, 206, 304, 400, 401, 404, 416, 429, 500, 503]) {
          await (await fetch(app.url, { headers: { 'x-status': String(status) } })).text()
          if (counted.includes(status)) spent++
          await expect.poll(() => left(app), { message: `after ${status}` }).toBe(limit - spent)
        }
      })

      test.each(['success', 'failure'] as const)(
        'count: "%s" counts a client that hangs up before any answer',
        async (count) => {
          const app = await start({ ...login(), count }, () => new Promise(() => {}))
          const leave = await hangingGet(app.port)
          await expect.poll(() => app.ran.length).toBe(1)
          leave()
          await pause(30)
          expect(await left(app)).toBe(1)
        },
      )

      test('4 good requests at once pass over two limiters of one name on one store', async () => {
        const store = still()
        const apps = [await start(login(store), slowly(200)), await start(login(store), slowly(200))]
        const statuses = await Promise.all(
          [0, 1, 0, 1].map(async (i) => (await fetch((apps[i] as Running).url)).status),
        )
        expect(statuses).toEqual([200, 200, 200, 200])
      })

      test('4 good requests at once pass over two stores that share their state elsewhere', async () => {
        const shared = still()
        const remote = (): Store => ({ ...promised(shared) })
        const apps = [await start(login(remote()), slowly(200)), await start(login(remote()), slowly(200))]
        const statuses = await Promise.all(
          [0, 0, 1, 1].map(async (i) => (await fetch((apps[i] as Running).url)).status),
        )
        expect(statuses).toEqual([200, 200, 200, 200])
      })

      test('a limit that is used up on a shared store is believed after a second, and refuses at once from then on', async () => {
        const app = await start(login(promised(still())), async () => ({ status: 401, text: '' }))
        for (const status of [401, 401]) expect((await fetch(app.url)).status).toBe(status)
        const startedAt = performance.now()
        expect((await fetch(app.url)).status).toBe(429)
        const first = performance.now() - startedAt
        expect(first).toBeGreaterThan(900)
        for (let n = 0; n < 30; n++) expect((await fetch(app.url)).status).toBe(429)
        // Half of what they would take if each waited for its second.
        expect(performance.now() - startedAt - first).toBeLessThan(15_000)
      })

      test('a request that waits longer than maxWait for the outcome of others is refused', async () => {
        let finish = () => {}
        const gate = new Promise<void>((resolve) => {
          finish = resolve
        })
        const app = await start({ ...login(), maxWait: '60ms' }, async () => {
          await gate
          return { status: 200, text: '' }
        })
        const first = [fetch(app.url), fetch(app.url)]
        await expect.poll(() => app.ran.length).toBe(2)
        expect((await fetch(app.url)).status).toBe(429)
        finish()
        for (const response of first) expect((await response).status).toBe(200)
      })

      test('a client that hangs up before any answer counts, once', async () => {
        const app = await start(login(), () => new Promise(() => {}))
        const leave = await hangingGet(app.port)
        await expect.poll(() => app.ran.length).toBe(1)
        leave()
        await pause(30)
        expect(await left(app)).toBe(1)
        expect(app.errors).toEqual([])
      })

      test('a client that leaves while it waits never reaches the handler', async () => {
        let finish = () => {}
        const gate = new Promise<void>((resolve) => {
          finish = resolve
        })
        const app = await start({ ...login(), limit: 1 }, async () => {
          await gate
          return { status: 200, text: '' }
        })
        const first = fetch(app.url)
        await expect.poll(() => app.ran.length).toBe(1)
        const leave = await hangingGet(app.port)
        await pause(30)
        leave()
        await pause(30)
        finish()
        expect((await first).status).toBe(200)
        expect((await fetch(app.url)).status).toBe(200)
        expect(app.ran).toHaveLength(2)
        expect(await left(app)).toBe(1)
      })

      test.each<[string, () => unknown, string]>([
        ['gives a promise', async () => false, 'expected true or false, got a promise'],
        ['rejects', () => Promise.reject(new Error('no table')), 'expected true or false, got a promise'],
        ['gives a text', () => 'yes', 'expected true or false, got "yes"'],
      ])('a count that %s counts, and says so', async (_how, count, what) => {
        let warnings: Error[] = []
        const unhandled = await unhandledDuring(async () => {
          warnings = await warningsDuring(async () => {
            const app = await start({ ...login(), count: count as never })
            expect((await fetch(app.url)).status).toBe(200)
            await pause(20)
            expect(await left(app)).toBe(1)
          })
        })
        expect(unhandled).toEqual([])
        expect(warnings).toMatchObject([{ code: 'SLUICE_COUNT_FAILED', message: `count: ${what}; the request counts` }])
      })

      test('count is told the status and the verdict', async () => {
        const told: unknown[] = []
        const count = (status: number, { remaining }: Verdict) => told.push([status, remaining]) > 1
        const app = await start({ ...login(), count }, async () => ({ status: 404, text: '' }))
        await fetch(app.url)
        await fetch(app.url)
        await expect
          .poll(() => told)
          .toEqual([
            [404, 1],
            [404, 1],
          ])
        await expect.poll(() => left(app)).toBe(1)
      })

      test('what a handler has settled for is charged, even if the request does not count', async () => {
        const app = await start({ ...login(), limit: 9, cost: 5 }, async ({ verdict }) => {
          await verdict?.settle(3)
          return { status: 200, text: '' }
        })
        await fetch(app.url)
        await pause(20)
        expect(await left(app)).toBe(6)
      })
    })

    describe('content bytes', () => {
      const upload = (extra: AnyOptions = {}): AnyOptions => ({
        name: 'upload',
        store: still(),
        limits: [
          gcra({ name: 'bytes', limit: 1000, window: '1h', unit: 'content-bytes' }),
          fixedWindow({ name: 'requests', limit: 10, window: '1h' }),
        ],
        maxBodyBytes: 400,
        ...extra,
      })
      const lefts = async (app: BodyApp) =>
        (await app.limiter.peek('everyone')).limits.map(({ remaining }) => remaining)
      const echo: Answering = async ({ body }) => ({ status: 200, text: String((await body()).length) })

      test('an announced length is charged, and told as a quota of bytes beside one of requests', async () => {
        const app = await start(upload(), echo)
        const response = await fetch(app.url, { method: 'POST', body: 'x'.repeat(300) })
        expect([response.status, await response.text()]).toEqual([200, '300'])
        expect(response.headers.get('ratelimit-policy')).toBe(
          '"bytes";q=1000;qu="content-bytes";w=3600, "requests";q=10;w=3600',
        )
        expect(response.headers.get('ratelimit')).toMatch(/^"bytes";r=700;t=\d+, "requests";r=9;t=\d+$/)
        expect(await lefts(app)).toEqual([700, 9])
      })

      test('with requireLength, answers 411 to a body of no announced length, and reserves nothing', async () => {
        const app = await start({ ...upload(), requireLength: true }, echo)
        const { response, request } = chunkedPost(app)
        request.write('x')
        const answer = await response
        expect(answer.statusCode).toBe(411)
        expect(answer.headers).toMatchObject({
          connection: 'close',
          'content-type': 'application/problem+json; charset=utf-8',
          'cache-control': 'no-store',
        })
        expect(JSON.parse(await textOf(answer))).toMatchObject({
          type: 'about:blank',
          title: 'Length Required',
          status: 411,
        })
        request.destroy()
        expect([app.ran, app.errors]).toEqual([[], []])
        expect(await lefts(app)).toEqual([1000, 10])
        for (const body of ['x'.repeat(100), '']) {
          expect(await (await fetch(app.url, { method: 'POST', body })).text()).toBe(String(body.length))
        }
        expect((await fetch(app.url)).status).toBe(200)
        expect(await lefts(app)).toEqual([900, 7])
      })

      test('a request without a body takes no bytes', async () => {
        const app = await start(upload())
        expect((await fetch(app.url)).status).toBe(200)
        expect(await lefts(app)).toEqual([1000, 9])
      })

      test('a length that is not announced is reserved as maxBodyBytes, and settled for what came', async () => {
        const app = await start(upload(), echo)
        const { response, request } = chunkedPost(app)
        request.write('x'.repeat(50))
        await expect.poll(() => lefts(app)).toEqual([600, 9])
        request.end('x'.repeat(70))
        const answer = await response
        expect([answer.statusCode, await textOf(answer)]).toEqual([200, '120'])
        await expect.poll(() => lefts(app)).toEqual([880, 9])
      })

      test('a body that is cut off is settled for what came', async () => {
        const app = await start(upload(), echo)
        const { response, request } = chunkedPost(app)
        request.write('x'.repeat(50))
        await expect.poll(() => lefts(app)).toEqual([600, 9])
        request.destroy()
        await response.catch(() => {})
        await expect.poll(() => lefts(app)).toEqual([950, 9])
      })

      test('an announced body of which only a part comes is settled for that part', async () => {
        const app = await start(upload(), echo)
        const request = send(app.url, { method: 'POST', headers: { 'content-length': 300 } })
        request.on('error', () => {})
        request.write('x'.repeat(40))
        await expect.poll(() => lefts(app)).toEqual([700, 9])
        request.destroy()
        await expect.poll(() => lefts(app)).toEqual([960, 9])
      })

      test('an unread body is settled as well', async () => {
        const app = await start(upload(), async ({ raw }) => {
          while (!raw.complete) await pause(5)
          return { status: 200, text: 'unread' }
        })
        const { response, request } = chunkedPost(app)
        request.write('x'.repeat(50))
        request.end('x'.repeat(10))
        expect((await response).statusCode).toBe(200)
        await expect.poll(() => lefts(app)).toEqual([940, 9])
      })

      test('too many bytes are refused before they come', async () => {
        const app = await start(upload(), echo)
        for (const status of [200, 200, 429]) {
          expect((await fetch(app.url, { method: 'POST', body: 'x'.repeat(400) })).status).toBe(status)
        }
        expect(await lefts(app)).toEqual([200, 8])
      })

      test('a request that does not count takes neither cost nor bytes', async () => {
        const app = await start(upload({ count: (status) => status >= 400 }), echo)
        expect((await fetch(app.url, { method: 'POST', body: 'x'.repeat(300) })).status).toBe(200)
        await expect.poll(() => lefts(app)).toEqual([1000, 10])
      })

      test('a handler settles for what the request turned out to cost', async () => {
        const store = still()
        const app = await start({ name: 'tokens', store, limit: 100, window: '1h', cost: 60 }, async ({ verdict }) => {
          await verdict?.settle(25)
          return { status: 200, text: '' }
        })
        expect((await fetch(app.url)).status).toBe(200)
        expect(await left(app)).toBe(75)
        expect((await fetch(app.url)).status).toBe(200)
        expect((await fetch(app.url)).status).toBe(429)
        expect(await left(app)).toBe(50)
      })
    })

    describe('maxBodyBytes', () => {
      const limited = (extra: AnyOptions = {}): AnyOptions => ({
        store: still(),
        limit: 5,
        window: '1h',
        maxBodyBytes: 100,
        ...extra,
      })
      const echo: Answering = async ({ body }) => ({ status: 200, text: await body() })
      const PROBLEM = {
        type: 'about:blank',
        title: 'Content Too Large',
        status: 413,
        detail: 'The body of a request may have up to 100 bytes.',
      }

      test('refuses a body that announces too much before it comes, and charges nothing', async () => {
        const app = await start(limited(), echo)
        const request = send(app.url, { method: 'POST', headers: { 'content-length': 101 } })
        request.on('error', () => {})
        request.flushHeaders()
        const [response] = (await once(request, 'response')) as [IncomingMessage]
        expect(response.statusCode).toBe(413)
        expect(response.headers).toMatchObject({
          connection: 'close',
          'content-type': 'application/problem+json; charset=utf-8',
          'cache-control': 'no-store',
        })
        expect(JSON.parse(await textOf(response))).toEqual(PROBLEM)
        request.destroy()
        expect(app.ran).toEqual([])
        expect(await left(app)).toBe(5)
      })

      test('lets through what is just as large as it may be, announced or not', async () => {
        const app = await start(limited(), echo)
        const body = 'x'.repeat(100)
        expect(await (await fetch(app.url, { method: 'POST', body })).text()).toBe(body)
        const { response, request } = chunkedPost(app)
        request.write(body.slice(0, 60))
        request.end(body.slice(60))
        expect(await textOf(await response)).toBe(body)
      })

      test('cuts off a body that grows too large on its way, once, and the handler sees it aborted', async () => {
        let whole = 0
        const app = await start(limited(), async ({ body }) => {
          await body()
          whole++
          return { status: 200, text: '' }
        })
        const { response, request } = chunkedPost(app)
        request.write('x'.repeat(60))
        await pause(20)
        request.write('x'.repeat(60))
        const answer = await response
        expect(answer.statusCode).toBe(413)
        expect(answer.headers).toMatchObject({
          connection: 'close',
          'content-type': 'application/problem+json; charset=utf-8',
        })
        expect(JSON.parse(await textOf(answer))).toEqual(PROBLEM)
        request.destroy()
        // Whether or not the handler had begun, it never saw a whole body.
        // Fastify tells its error handler of no error for which there is no client left to answer.
        await expect.poll(() => app.errors.length).toBe(name === 'Fastify' ? 0 : 1)
        await pause(20)
        expect(whole).toBe(0)
        expect((await fetch(app.url, { method: 'POST', body: 'fine' })).status).toBe(200)
        expect(whole).toBe(1)
      })

      test('a body that is too large from its first chunk on is cut off as well, also when it is not read', async () => {
        const app = await start(limited(), async () => {
          await pause(60)
          return { status: 200, text: 'late' }
        })
        const { response, request } = chunkedPost(app)
        request.write('x'.repeat(5000))
        const answer = await response
        expect(answer.statusCode).toBe(413)
        request.destroy()
      })

      test('a request that is answered 413 while it is handled counts, so that no client gets its work done for nothing', async () => {
        let answer = () => {}
        const answered = () =>
          new Promise<Awaited<ReturnType<Answering>>>((resolve) => {
            answer = () => resolve({ status: 200, text: 'late' })
          })
        const app = await start(limited({ count: 'success' }), answered)
        for (const remaining of [4, 3]) {
          const { response, request } = chunkedPost(app)
          request.write('x'.repeat(60))
          // Time for the handler to begin, where the framework does not read the body first.
          await pause(20)
          request.write('x'.repeat(60))
          expect((await response).statusCode).toBe(413)
          request.destroy()
          answer()
          await expect.poll(() => left(app)).toBe(remaining)
        }
      })

      test('what skip skips may be of any length', async () => {
        const app = await start(limited({ skip: () => true }), echo)
        expect((await fetch(app.url, { method: 'POST', body: 'x'.repeat(500) })).status).toBe(200)
      })

      test('a late skip does not lose what came meanwhile', async () => {
        const skip = async () => {
          await pause(40)
          return false
        }
        const app = await start(limited({ skip }), echo)
        const small = chunkedPost(app)
        small.request.end('x'.repeat(90))
        expect(await textOf(await small.response)).toBe('x'.repeat(90))
        const large = chunkedPost(app)
        large.request.write('x'.repeat(60))
        large.request.write('x'.repeat(60))
        expect((await large.response).statusCode).toBe(413)
        large.request.destroy()
        expect(app.ran).toHaveLength(1)
        expect(app.errors).toEqual([])
      })

      test('a body that grows too large while the store is asked charges nothing and reaches no handler', async () => {
        let isDecided = false
        const store = still()
        const slow: Store = {
          ...promised(store),
          decide: async (ask) => {
            await pause(60)
            const result = await store.decide(ask)
            isDecided = true
            return result
          },
        }
        const app = await start(limited({ store: slow }), echo)
        const { response, request } = chunkedPost(app)
        request.write('x'.repeat(60))
        request.write('x'.repeat(60))
        expect((await response).statusCode).toBe(413)
        request.destroy()
        await until('it is decided on', () => isDecided)
        await until('its charge is refunded', async () => (await left(app)) === 5)
        expect([app.ran, app.errors]).toEqual([[], []])
      })
    })

    describe('anonymous', () => {
      const keyed = (anonymous: 'error' | 'by-ip' | 'skip', extra: AnyOptions = {}): AnyOptions => ({
        name: 'users',
        store: still(),
        limit: 1,
        window: '1h',
        key: byHeader('x-user', { secret: false }),
        anonymous,
        ...extra,
      })
      const statuses = async (app: Running, ...users: (string | undefined)[]) => {
        const seen: number[] = []
        for (const user of users) {
          seen.push((await fetch(app.url, user === undefined ? {} : { headers: { 'x-user': user } })).status)
        }
        return seen
      }

      test('a request without a key is invalid by default', async () => {
        const app = await start(keyed('error'))
        expect(await statuses(app, undefined, 'ann', 'ann')).toEqual([400, 200, 429])
      })

      test('skip lets it through without a limit', async () => {
        const app = await start(keyed('skip'))
        expect(await statuses(app, undefined, undefined, '', 'ann', 'ann')).toEqual([200, 200, 200, 200, 429])
      })

      test('by-ip counts it by address, apart from everyone who has a key', async () => {
        const app = await start(keyed('by-ip'))
        expect(await statuses(app, '127.0.0.1', 'ip:127.0.0.1', undefined, '', 'ann')).toEqual([
          200, 200, 200, 429, 200,
        ])
      })

      test('a key that reads like an anonymous client is another identity', async () => {
        const app = await start(keyed('by-ip'))
        expect(await statuses(app, 'anonymous=127.0.0.1', '127.0.0.1', undefined)).toEqual([200, 200, 200])
        expect(app.errors).toEqual([])
      })

      test('an object is invalid, whatever the option says, and a promise is what it resolves to', async () => {
        for (const anonymous of ['by-ip', 'skip'] as const) {
          for (const key of [() => ({}), () => Number.NaN, () => false]) {
            const app = await start(keyed(anonymous, { key: key as never }))
            expect(await statuses(app, undefined)).toEqual([400])
          }
          const app = await start(keyed(anonymous, { key: async () => undefined }))
          expect(await statuses(app, undefined)).toEqual([200])
          const wrong = await start(keyed(anonymous, { key: async () => ({}) as never }))
          expect(await statuses(wrong, undefined)).toEqual([400])
        }
      })
    })

    describe('tiers', () => {
      const tiered = (extra: AnyOptions = {}): AnyOptions => {
        const all = gcra({ name: 'all', limit: 10, window: '1h', key: everyone(), reserve: { 10: 0.3 } })
        const own = (limit: number) => fixedWindow({ name: 'own', limit, window: '1h' })
        return {
          name: 'api',
          store: still(),
          key: byHeader('x-user', { secret: false }),
          tiers: { free: [own(2), all], pro: [own(9), all], gratis: [own(2), all] },
          tier: (_request: unknown, context: { header(name: string): string | undefined }) =>
            context.header('x-tier') as string,
          priority: { pro: 10 },
          ...extra,
        }
      }
      const ask = async (app: Running, user: string, tier: string) =>
        fetch(app.url, { headers: { 'x-user': user, 'x-tier': tier } })

      test('each has limits of its own, and a limit that stands in several is one', async () => {
        const app = await start(tiered())
        const seen: unknown[] = []
        for (const [user, tier] of [
          ['ann', 'free'],
          ['ann', 'free'],
          ['ann', 'free'],
          ['ann', 'gratis'],
          ['bob', 'pro'],
        ] as const) {
          const response = await ask(app, user, tier)
          seen.push([response.status, response.headers.get('ratelimit')?.replace(/;t=\d+/g, '')])
        }
        expect(seen).toEqual([
          [200, '"own";r=1, "all";r=6'],
          [200, '"own";r=0, "all";r=5'],
          [429, '"own";r=0, "all";r=5'],
          [200, '"own";r=1, "all";r=4'],
          [200, '"own";r=8, "all";r=6'],
        ])
      })

      test('a share that is reserved is there for the higher priority alone', async () => {
        const app = await start(tiered())
        for (let n = 0; n < 7; n++) expect((await ask(app, `user-${n}`, 'free')).status).toBe(200)
        const refused = await ask(app, 'late', 'free')
        expect(refused.status).toBe(429)
        // One unit comes back in 360 s, and the three that are kept are full.
        expect(refused.headers.get('retry-after')).toBe('360')
        for (const status of [200, 200, 200, 429]) expect((await ask(app, 'payer', 'pro')).status).toBe(status)
      })

      test('an identity by its kind is looked at in the tier that is named, and reset in all', async () => {
        const app = await start(tiered())
        const limiter = app.limiter as unknown as Limiter<IdentityByKind>
        const ann = { 'header:x-user': 'ann' }
        for (const tier of ['free', 'pro']) await ask(app, 'ann', tier)
        const lefts = async (tier: string) => (await limiter.peek(ann, { tier })).limits[0]?.remaining
        expect([await lefts('free'), await lefts('gratis'), await lefts('pro')]).toEqual([1, 2, 8])
        await expect(limiter.peek(ann)).rejects.toMatchObject({ code: 'INVALID_POLICY' })
        await limiter.reset(ann)
        expect([await lefts('free'), await lefts('gratis'), await lefts('pro')]).toEqual([2, 2, 9])
      })

      test('a tier that is not there is an error that names it and those there are', async () => {
        const app = await start(tiered())
        for (const tier of ['gold', 'constructor', '__proto__']) {
          expect((await ask(app, 'ann', tier)).status).toBe(500)
        }
        expect(app.errors[0]).toMatchObject({
          code: 'INVALID_POLICY',
          message: 'policy "api": tier: expected "free" or "pro" or "gratis", got "gold"',
        })
      })
    })
  })
}

const done: Answering = async () => ({ status: 200, text: 'done' })

/** Late enough for others to have come meanwhile. */
const slowly =
  (status: number): Answering =>
  async () => {
    await pause(60)
    return { status, text: '' }
  }

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The same store as one that has to be asked over a network. */
function promised(store: Store): Store {
  return {
    decide: async (ask) => store.decide(ask),
    reset: async (plan, identities) => store.reset(plan, identities),
    block: async (...block) => store.block(...block),
    unblock: async (...block) => store.unblock(...block),
    close: () => store.close(),
  }
}

function chunkedPost(app: Running) {
  const request = send(app.url, {
    method: 'POST',
    headers: { 'transfer-encoding': 'chunked', 'content-type': 'text/plain' },
  })
  const response = once(request, 'response').then(([response]) => response as IncomingMessage)
  response.catch(() => {})
  request.on('error', () => {})
  return { request, response }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return text
}

/** Sends a GET over a socket of its own; the returned function hangs up. */
async function hangingGet(port: number): Promise<() => void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  return () => socket.destroy()
}
