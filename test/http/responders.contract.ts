import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  degrade,
  delay,
  everyone,
  gcra,
  type HttpContext,
  leakyBucket,
  memoryStore,
  perDay,
  queue,
  reject,
  shadow,
  slidingLog,
  tarpit,
  throttle,
  type Verdict,
} from '@sluice/core'
import { afterAll, describe, expect, test } from 'vitest'
import { unhandledDuring, warningsDuring } from '../support/process-events.js'
import type { AnsweringApp, AnsweringFactory, Handler } from './support/answers.js'
import type { AnyOptions } from './support/app.js'
import { type RawRequest, rawRequest } from './support/raw.js'

interface Running extends AnsweringApp {
  readonly port: number
  /** Verdicts of the requests whose handler ran. */
  readonly ran: (Verdict | undefined)[]
}

/** What every responder does, on sockets, to the byte. */
export function respondersContract(name: string, factory: AnsweringFactory): void {
  // Side by side, as most of them wait most of the time.
  describe.concurrent(name, () => {
    const running: Running[] = []
    const start = async (options: AnyOptions, answer: Handler = () => ({ body: 'done' })): Promise<Running> => {
      const ran: (Verdict | undefined)[] = []
      const app = await factory({ key: everyone(), ...options }, (verdict) => {
        ran.push(verdict)
        return answer(verdict)
      })
      app.server.listen(0, '127.0.0.1')
      await once(app.server, 'listening')
      const started = { ...app, ran, port: (app.server.address() as AddressInfo).port }
      running.push(started)
      return started
    }
    afterAll(async () => {
      for (const { server } of running.splice(0)) {
        const closed = once(server, 'close')
        server.close()
        server.closeAllConnections()
        await closed
      }
    })
    const ask = async ({ port }: Running, method?: string, headers?: Record<string, string>) =>
      (await rawRequest(port, method, headers)).response
    const frozen = () => memoryStore({ clock: () => 1_000_000 })

    describe('shadow', () => {
      const limit = { store: frozen(), limit: 1, window: '10s' } as const

      test.each<[string, Parameters<typeof shadow>[0], Handler]>([
        ['JSON', { body: { ok: true } }, () => ({ body: { ok: true } })],
        ['text', { body: 'welcome', contentType: 'text/html; charset=utf-8' }, () => html('welcome')],
        ['another status', { status: 201, body: { id: 7 } }, () => ({ status: 201, body: { id: 7 } })],
        [
          'more headers',
          { headers: { 'Cache-Control': 'max-age=9' }, body: { a: 1 } },
          () => ({ headers: { 'Cache-Control': 'max-age=9' }, body: { a: 1 } }),
        ],
      ])('configured, is the real response to the byte: %s', async (_what, options, answer) => {
        const app = await start({ ...limit, store: frozen(), respond: shadow(options) }, answer)
        const real = await ask(app)
        const shadowed = await ask(app)
        expect({ ...shadowed, head: fieldsOf(shadowed.head) }).toEqual({ ...real, head: fieldsOf(real.head) })
        expect(shadowed.head).not.toMatch(/ratelimit|retry|no-store/i)
        expect(app.ran).toHaveLength(1)
      })

      test.each<[string, Handler]>([
        ['JSON', () => ({ headers: { 'X-Version': '3' }, body: { ok: true, text: 'ünïcode' } })],
        ['text', () => html('<p>welcome</p>')],
        ['bytes', () => ({ headers: { 'Content-Type': 'image/png' }, body: Buffer.from([0, 255, 1, 254]) })],
        ['an empty body', () => ({ body: '' })],
        ['no content', () => ({ status: 204 })],
        ['created', () => ({ status: 201, headers: { Location: '/7' }, body: { id: 7 } })],
        [
          'a stream',
          () => ({
            headers: { 'Content-Type': 'text/csv', 'X-Rows': '2' },
            body: Readable.from([Buffer.from('1,2\n3')]),
          }),
        ],
      ])('learned, is the real response to the byte, in order and spelling too: %s', async (_what, answer) => {
        const app = await start({ ...limit, store: frozen(), respond: shadow({ learn: true }) }, answer)
        const real = await ask(app)
        expect(await ask(app)).toEqual(real)
        expect(await ask(app)).toEqual(real)
        expect(app.ran).toHaveLength(1)
      })

      test('learned from GET, it answers HEAD with the same head and no body', async () => {
        const app = await start({ ...limit, store: frozen(), respond: shadow({ learn: true }) }, () => ({
          body: { a: 1 },
        }))
        const real = await ask(app)
        expect(await ask(app, 'HEAD')).toEqual({ ...real, body: '' })
      })

      test('it learns one answer for each method, and from success alone', async () => {
        let status = 500
        const app = await start({ ...limit, limit: 3, store: frozen(), respond: shadow({ learn: true }) }, () => ({
          status,
          body: { status },
        }))
        expect((await ask(app)).status).toBe(500)
        status = 200
        const get = await ask(app)
        status = 201
        const post = await ask(app, 'POST')
        expect([await ask(app), await ask(app, 'POST')]).toEqual([get, post])
      })

      test.each<[string, Record<string, string>, Record<string, string>]>([
        ['sets a cookie', { 'Set-Cookie': 'session=secret' }, {}],
        ['is private', { 'Cache-Control': 'private, max-age=5' }, {}],
        ['is not to be stored', { 'Cache-Control': 'no-store' }, {}],
        ['was given to someone who is logged in', {}, { Authorization: 'Bearer secret' }],
      ])('hands nobody an answer that %s', async (_what, headers, sent) => {
        const app = await start({ ...limit, store: frozen(), respond: shadow({ learn: true }) }, () => ({
          headers,
          body: 'secret',
        }))
        expect((await ask(app, 'GET', sent)).body).toBe('secret')
        const shadowed = await ask(app)
        expect([shadowed.status, shadowed.body]).toEqual([200, 'OK'])
        expect(shadowed.head).not.toMatch(/cookie|secret/i)
      })

      test('tells no quota with what it admits either', async () => {
        const app = await start({ ...limit, store: frozen(), headers: 'draft-7', respond: shadow() })
        expect((await ask(app)).head).not.toMatch(/ratelimit/i)
      })

      test('answers a block, too, and functions of the request may say how', async () => {
        const app = await start({
          ...limit,
          store: frozen(),
          respond: shadow({ body: async () => ({ at: 'x' }), headers: async () => ({ 'X-Id': '5' }) }),
        })
        await app.limiter.block('everyone', { for: '1h' })
        const { status, head, body } = await ask(app)
        expect([status, body]).toEqual([200, '{"at":"x"}'])
        expect(head).toMatch(/x-id: 5/i)
        expect(app.ran).toEqual([])
      })

      test('takes as long as the sample took, on demand', async () => {
        const app = await start(
          { ...limit, store: frozen(), respond: shadow({ learn: true, delayLike: true }) },
          async () => {
            await sleep(80)
            return { body: 'done' }
          },
        )
        await ask(app)
        const request = await rawRequest(app.port)
        expect(await request.took).toBeGreaterThan(75)
        const leaving = await rawRequest(app.port)
        leaving.socket.destroy()
        await leaving.response
        expect(app.errors).toEqual([])
      })
    })

    describe('delay', () => {
      test('lets requests over the limit through when there is room, in order, each charged once', async () => {
        const verdicts: Verdict[] = []
        const app = await start({
          limits: [gcra({ limit: 1, window: 120 })],
          respond: delay(),
          onVerdict: (_request: unknown, verdict: Verdict) => void verdicts.push(verdict),
        })
        const requests: RawRequest[] = []
        for (let n = 0; n < 4; n++) requests.push(await settled(rawRequest(app.port)))
        const first = requests[0] as RawRequest
        const ends = await Promise.all(requests.map(async (each) => each.sentAt + (await each.took) - first.sentAt))
        for (const [i, end] of ends.entries()) {
          expect(end).toBeGreaterThan(i * 120 - 5)
          expect((await requests[i]?.response)?.status).toBe(200)
        }
        expect(ends).toEqual([...ends].sort((a, b) => a - b))
        expect(ends[3]).toBeLessThan(2000)
        expect(app.ran.map((verdict) => [verdict?.allowed, verdict?.cost])).toEqual(Array(4).fill([true, 1]))
        expect(verdicts).toEqual(app.ran)
        expect((await app.limiter.peek('everyone')).resetAfterMs).toBeLessThanOrEqual(120)
      })

      test('refuses at once what would take longer, and says when there will be room behind the others', async () => {
        const app = await start({ limits: [gcra({ limit: 1, window: 1000 })], respond: delay({ max: 1500 }) })
        await ask(app)
        const waiting = await settled(rawRequest(app.port))
        const refused = await settled(rawRequest(app.port))
        const { status, head } = await refused.response
        expect(status).toBe(429)
        expect(head).toMatch(/retry-after: 2/i)
        expect((await waiting.response).status).toBe(200)
        expect(app.ran).toHaveLength(2)
      })

      test('nobody overtakes those who wait', async () => {
        const time = { now: 0 }
        const store = memoryStore({ clock: () => time.now })
        const app = await start({ store, limits: [gcra({ limit: 1, window: 300 })], respond: delay() })
        await ask(app)
        const first = await settled(rawRequest(app.port))
        await sleep(50)
        // There is room now, but the first in line has not woken up yet.
        time.now = 300
        const second = await settled(rawRequest(app.port))
        expect((await first.response).status).toBe(200)
        expect(app.ran).toHaveLength(2)
        time.now = 600
        expect((await second.response).status).toBe(200)
      })

      test('a client that leaves gives its place back and its handler never runs', async () => {
        const app = await start({ limits: [gcra({ limit: 1, window: 600 })], respond: delay() })
        await ask(app)
        const leaving = await settled(rawRequest(app.port))
        const staying = await settled(rawRequest(app.port))
        leaving.socket.destroy()
        expect((await staying.response).status).toBe(200)
        // Else it would have been 1200.
        expect(await staying.took).toBeLessThan(1000)
        await sleep(100)
        expect(app.ran).toHaveLength(2)
        expect(app.errors).toEqual([])
      })

      test('a client that leaves while the store admits it gives that back', async () => {
        const time = { now: 0 }
        const store = memoryStore({ clock: () => time.now })
        let gate: Promise<void> | undefined
        const late = {
          decide: async (ask: never) => {
            const answer = store.decide(ask)
            await gate
            return answer
          },
        } as never
        const app = await start({ store: late, limits: [gcra({ limit: 1, window: 100 })], respond: delay() })
        await ask(app)
        const leaving = await settled(rawRequest(app.port))
        // Admitted in the store, which has not answered yet.
        time.now = 100
        let open = () => {}
        gate = new Promise((resolve) => {
          open = resolve
        })
        await sleep(120)
        leaving.socket.destroy()
        await sleep(30)
        open()
        gate = undefined
        await expect.poll(async () => (await app.limiter.peek('everyone')).remaining).toBe(1)
        expect(app.ran).toHaveLength(1)
        expect(app.errors).toEqual([])
      })

      test('from some units on, admitted requests are slowed down, by more and more', async () => {
        const app = await start({
          store: frozen(),
          limits: [gcra({ limit: 4, window: '10s', respond: delay({ from: 2, by: 300 }) })],
        })
        const took: number[] = []
        for (let n = 0; n < 4; n++) took.push(await (await rawRequest(app.port)).took)
        for (const [i, least] of [0, 0, 300, 600].entries()) {
          expect(took[i]).toBeGreaterThan(least - 3)
          expect(took[i]).toBeLessThan(least + 290)
        }
        expect(app.ran).toHaveLength(4)
      })

      test('a slowed client that leaves gives its charge back', async () => {
        const app = await start({ store: frozen(), limit: 4, window: '10s', respond: delay({ from: 0, by: '5s' }) })
        const leaving = await settled(rawRequest(app.port))
        expect((await app.limiter.peek('everyone')).remaining).toBe(3)
        leaving.socket.destroy()
        await expect.poll(async () => (await app.limiter.peek('everyone')).remaining).toBe(4)
        expect(app.ran).toEqual([])
      })

      test('holds so many at most, and refuses others at once, by another responder', async () => {
        const app = await start({
          limits: [gcra({ limit: 1, window: 300 })],
          respond: delay({ maxConnections: 1, otherwise: reject({ status: 503 }) }),
        })
        await ask(app)
        const held = await settled(rawRequest(app.port))
        expect((await ask(app)).status).toBe(503)
        expect((await held.response).status).toBe(200)
      })

      test('refuses at once what can never be admitted, and what is blocked', async () => {
        const app = await start({ limit: 1, window: 300, cost: 2, respond: delay() })
        expect((await ask(app)).status).toBe(429)
        await app.limiter.block('everyone', { for: 200 })
        expect((await ask(app)).status).toBe(429)
        expect(app.ran).toEqual([])
      })

      test('asking again charges nothing where refusals are charged', async () => {
        const app = await start({ limits: [gcra({ limit: 2, window: 400 })], onDeny: 'charge', respond: delay() })
        const requests: RawRequest[] = []
        for (let n = 0; n < 4; n++) requests.push(await settled(rawRequest(app.port)))
        for (const { response } of requests) expect((await response).status).toBe(200)
      })
    })

    describe('queue', () => {
      const oneEach = (window: number) => [gcra({ limit: 1, window })]
      const byHeader = (_request: unknown, context: HttpContext) => Number(context.header('x-class') ?? 0)
      const order = async (app: Running, classes: readonly number[]) => {
        const left: number[] = []
        const requests: RawRequest[] = []
        for (const own of classes) {
          const request = await settled(rawRequest(app.port, 'GET', { 'X-Class': String(own) }))
          void request.response.then(({ status }) => left.push(status === 200 ? own : -status))
          requests.push(request)
        }
        await Promise.all(requests.map(({ response }) => response))
        return left
      }

      test('serves higher classes first, and equals as they came', async () => {
        const app = await start({ limits: oneEach(300), respond: queue({ priority: byHeader }) })
        await ask(app)
        expect(await order(app, [0, 1, 0, 2, 1])).toEqual([2, 1, 1, 0, 0])
        expect(app.ran).toHaveLength(6)
      })

      test("goes by the limiter's own priority where it names none", async () => {
        const app = await start({ limits: oneEach(150), priority: byHeader, respond: queue() })
        await ask(app)
        expect(await order(app, [0, 1.5, 0, 2, 1])).toEqual([2, 1.5, 1, 0, 0])
      })

      test('lets nobody starve: waiting raises a request until it is first', async () => {
        const app = await start({
          limits: oneEach(300),
          respond: queue({ priority: async (r: unknown, c: HttpContext) => byHeader(r, c), ageEvery: 300 }),
        })
        await ask(app)
        const left: string[] = []
        const send = async (own: number, what: string) => {
          const request = await rawRequest(app.port, 'GET', { 'X-Class': String(own) })
          return request.response.then(() => left.push(what))
        }
        const sent = [send(0, 'low')]
        await sleep(20)
        sent.push(send(1, 'soon after'), send(1, 'soon after'))
        await sleep(350)
        // By now the low one is worth as much as these, and came first.
        sent.push(send(1, 'late'), send(1, 'late'))
        await Promise.all(sent)
        expect(left).toEqual(['soon after', 'soon after', 'low', 'late', 'late'])
      })

      const byUser = (_request: unknown, context: HttpContext) => context.header('x-user')
      const userAndAll = (user: number, all: number) => [
        gcra({ name: 'user', limit: 1, window: user, key: byUser }),
        gcra({ name: 'all', limit: 1, window: all, key: everyone() }),
      ]

      test('classes count among all who wait for a limit, whoever they are', async () => {
        const app = await start({ limits: userAndAll(10, 300), respond: queue({ priority: byHeader }) })
        const left: string[] = []
        const send = async (user: string, own: number) => {
          const request = await settled(rawRequest(app.port, 'GET', { 'X-User': user, 'X-Class': String(own) }))
          void request.response.then(() => left.push(user))
        }
        for (const [user, own] of [
          ['ann', 0],
          ['bob', 0],
          ['cid', 1],
          ['dan', 2],
        ] as const)
          await send(user, own)
        await expect.poll(() => left.length).toBe(4)
        expect(left).toEqual(['ann', 'dan', 'cid', 'bob'])
      })

      test('who waits for a limit of their own holds up nobody else', async () => {
        const app = await start({ limits: userAndAll(900, 60), respond: queue() })
        const send = async (user: string) => settled(rawRequest(app.port, 'GET', { 'X-User': user }))
        const first = await send('ann')
        const second = await send('ann')
        const third = await send('bob')
        expect(await third.took).toBeLessThan(600)
        expect(await second.took).toBeGreaterThan(800)
        for (const { response } of [first, second, third]) expect((await response).status).toBe(200)
      })

      test('refuses at once when full, with 503 and when to come back', async () => {
        const app = await start({ limits: oneEach(2000), respond: queue({ size: 2 }) })
        await ask(app)
        const waiting = [await settled(rawRequest(app.port)), await settled(rawRequest(app.port))]
        const { status, head, body } = await ask(app)
        expect(status).toBe(503)
        expect(head).toMatch(/retry-after: 6/i)
        expect(head).toMatch(/ratelimit: "[^"]+";r=0;t=6/i)
        expect(body).toContain('#temporary-reduced-capacity')
        // A place comes free when a client leaves.
        waiting[0]?.socket.destroy()
        await waiting[0]?.response
        await sleep(100)
        const next = await settled(rawRequest(app.port))
        expect(next.socket.destroyed).toBe(false)
        expect(app.ran).toHaveLength(1)
      })

      test('who was told when to come back gets through then at once', async () => {
        const app = await start({ limits: oneEach(280), respond: queue({ size: 2 }) })
        await ask(app)
        for (let n = 0; n < 2; n++) await settled(rawRequest(app.port))
        const { status, head } = await ask(app)
        expect(status).toBe(503)
        const [, seconds] = /retry-after: (\d+)/i.exec(head) ?? []
        expect(seconds).toBe('1')
        await sleep(Number(seconds) * 1000)
        const again = await rawRequest(app.port)
        expect((await again.response).status).toBe(200)
        expect(await again.took).toBeLessThan(250)
      })

      test('refuses whoever would wait for too long, also when others push in', async () => {
        const app = await start({
          limits: oneEach(500),
          respond: queue({ priority: byHeader, maxWait: 1250, otherwise: reject({ body: 'later' }) }),
        })
        await ask(app)
        // In no order: a refusal is as quick as the answer to whoever was served in that moment.
        expect((await order(app, [0, 0, 1, 1])).sort()).toEqual([-429, -429, 1, 1])
      })

      test('a wait for a place in flight ends as soon as one is freed', async () => {
        const release: (() => void)[] = []
        const app = await start(
          { limits: [concurrency({ limit: 1 })], respond: queue() },
          () => new Promise((resolve) => release.push(() => resolve({ body: 'done' }))),
        )
        const first = await rawRequest(app.port)
        await expect.poll(() => release.length).toBe(1)
        const second = await settled(rawRequest(app.port))
        expect(release).toHaveLength(1)
        release[0]?.()
        expect((await first.response).status).toBe(200)
        await expect.poll(() => release.length).toBe(2)
        release[1]?.()
        expect((await second.response).status).toBe(200)
        await expect.poll(async () => (await app.limiter.peek('everyone')).remaining).toBe(1)
      })

      test('turns of a leaky bucket that queues by itself come after the line', async () => {
        const app = await start({
          limits: [leakyBucket({ leak: 1, every: 100, capacity: 2, queue: true })],
          respond: queue(),
        })
        const requests: RawRequest[] = []
        for (let n = 0; n < 5; n++) requests.push(await settled(rawRequest(app.port)))
        const first = requests[0] as RawRequest
        const ends = await Promise.all(requests.map(async (each) => each.sentAt + (await each.took) - first.sentAt))
        for (const [i, end] of ends.entries()) expect(end).toBeGreaterThan(i * 100 - 10)
        expect(app.ran).toHaveLength(5)
      })

      test.each<[string, () => unknown]>([
        [
          'throws',
          () => {
            throw new Error('user function')
          },
        ],
        ['rejects', async () => Promise.reject(new Error('user function'))],
        ['is no number', () => Number.NaN],
      ])('a priority that %s reaches the error handler once, and charges nothing', async (_what, priority) => {
        const app = await start({
          store: frozen(),
          limits: oneEach(200),
          respond: queue({ priority: priority as never }),
        })
        await ask(app)
        expect((await ask(app)).status).toBe(500)
        expect(app.errors).toHaveLength(1)
        expect((await app.limiter.peek('everyone')).retryAfterMs).toBe(200)
        expect(app.ran).toHaveLength(1)
      })
    })

    describe('throttle', () => {
      const bytes = randomBytes(96 * 1024)
      const digest = (body: Buffer | string) =>
        createHash('sha256')
          .update(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
          .digest('hex')
      const slowed = { limit: 0, window: '1s', headers: false } as const
      const binary = { 'Content-Type': 'application/octet-stream' }

      test.each<[string, () => Buffer | Readable]>([
        ['a body in one piece', () => bytes],
        ['a stream', () => Readable.from(pieces(bytes, 10_000))],
      ])('slows %s after so many bytes, and changes none', async (_what, body) => {
        const app = await start(
          { ...slowed, respond: throttle({ bytesPerSecond: 32 * 1024, after: 64 * 1024 }) },
          () => ({ headers: { ...binary, 'Content-Length': String(bytes.length) }, body: body() }),
        )
        const request = await rawRequest(app.port)
        let received = 0
        let tooEarly = 0
        request.socket.on('data', (chunk) => {
          received += chunk.length
          const fairShare = 64 * 1024 + ((performance.now() - request.sentAt) / 1000) * 32 * 1024
          // The head, a slice at the start, and one to catch up with.
          tooEarly = Math.max(tooEarly, received - fairShare - 5 * 1024)
        })
        const response = await request.response
        expect(response.status).toBe(200)
        expect(digest(response.body)).toBe(digest(bytes))
        expect(tooEarly).toBe(0)
        // 32 KiB at 32 KiB/s; without a start at full speed it would be 3 s.
        expect(await request.took).toBeGreaterThan(900)
        expect(await request.took).toBeLessThan(2500)
      })

      test('a body without a length gets the length that it would have had', async () => {
        const app = await start({ ...slowed, respond: throttle({ bytesPerSecond: 10_000 }) }, () => ({
          body: 'x'.repeat(1500),
        }))
        const { head, body } = await ask(app)
        expect(head).toMatch(/content-length: 1500/i)
        expect(body).toBe('x'.repeat(1500))
      })

      test('a stream waits for its client, so that little is held', async () => {
        let made = 0
        const endless = () =>
          new Readable({
            read() {
              made += 16_384
              this.push(Buffer.alloc(16_384))
            },
          })
        const app = await start({ ...slowed, respond: throttle({ bytesPerSecond: 50_000 }) }, () => ({
          headers: binary,
          body: endless(),
        }))
        const request = await rawRequest(app.port)
        await expect.poll(() => request.socket.bytesRead).toBeGreaterThan(15_000)
        expect(performance.now() - request.sentAt).toBeGreaterThan(200)
        expect(made).toBeLessThan(150_000)
        request.socket.destroy()
        await sleep(100)
        const then = made
        await sleep(150)
        expect(made).toBe(then)
      })

      test('answers HEAD, and responses without a body, as ever', async () => {
        const app = await start({ ...slowed, respond: throttle({ bytesPerSecond: 1 }) }, () => ({ status: 204 }))
        expect((await ask(app)).status).toBe(204)
        const long = await start({ ...slowed, respond: throttle({ bytesPerSecond: 1 }) }, () => ({
          body: 'long enough',
        }))
        const head = await ask(long, 'HEAD')
        expect([head.status, head.body]).toEqual([200, ''])
      })
    })

    describe('degrade', () => {
      test('calls on, and the verdict says so from the start, uncharged', async () => {
        const app = await start({ store: frozen(), limit: 1, window: '10s', respond: degrade() }, (verdict) => ({
          body: { degraded: verdict?.degraded },
        }))
        expect((await ask(app)).body).toBe('{"degraded":false}')
        const { status, head, body } = await ask(app)
        expect([status, body]).toEqual([200, '{"degraded":true}'])
        expect(head).toMatch(/ratelimit: "default";r=0/i)
        expect(head).not.toMatch(/retry-after/i)
        expect(app.ran[1]).toMatchObject({ allowed: false, reason: 'limited', degraded: true, cost: 0 })
      })

      test('does not let a block through', async () => {
        for (const respond of [degrade(), throttle({ bytesPerSecond: 10 })]) {
          const app = await start({ store: frozen(), limit: 1, window: '10s', respond })
          await app.limiter.block('everyone', { for: '1h' })
          expect((await ask(app)).status).toBe(429)
          expect(app.ran).toEqual([])
        }
      })
    })

    describe('tarpit', () => {
      test('holds so many connections so long, answers others at once, and frees who leaves', async () => {
        const app = await start({
          store: frozen(),
          limit: 0,
          window: '10s',
          respond: tarpit({ for: 1000, maxConnections: 2 }),
        })
        const held = [await settled(rawRequest(app.port)), await settled(rawRequest(app.port))]
        const atOnce = await rawRequest(app.port)
        expect((await atOnce.response).status).toBe(429)
        expect(await atOnce.took).toBeLessThan(600)
        held[0]?.socket.destroy()
        await sleep(100)
        const inItsPlace = await rawRequest(app.port)
        expect((await inItsPlace.response).status).toBe(429)
        expect(await inItsPlace.took).toBeGreaterThan(990)
        expect((await held[1]?.response)?.status).toBe(429)
        expect(app.errors).toEqual([])
      })

      test('does not keep a server from closing for longer than it holds', async () => {
        const app = await start({ store: frozen(), limit: 0, window: '10s', respond: tarpit({ for: 200 }) })
        const held = await settled(rawRequest(app.port))
        app.server.close()
        await once(app.server, 'close')
        expect((await held.response).status).toBe(429)
      })
    })

    describe('a function', () => {
      test('may answer itself, late, or leave it to a responder', async () => {
        const app = await start({
          store: frozen(),
          limit: 1,
          window: '10s',
          respond: async (refused: Parameters<ReturnType<typeof reject>>[0]) =>
            refused.context.method === 'POST'
              ? reject({ status: 503 })(refused)
              : { status: 418, headers: [['X-Tea', 'yes']], body: 'pot', tellsQuota: false },
        })
        await ask(app)
        const { status, head, body } = await ask(app)
        expect([status, body]).toEqual([418, 'pot'])
        expect(head).toMatch(/x-tea: yes/i)
        expect((await ask(app, 'POST')).status).toBe(503)
      })
    })

    describe('responders of limits', () => {
      const both = () =>
        start({
          store: frozen(),
          limits: [
            gcra({ name: 'fast', limit: 2, window: '10s', respond: reject({ status: 503 }) }),
            perDay(3, { name: 'day', respond: reject({ body: 'tomorrow' }) }),
            slidingLog({ name: 'hour', limit: 4, window: '1h' }),
          ],
          respond: reject({ body: 'own' }),
        })

      test('the limit that refuses chooses', async () => {
        const app = await both()
        for (let n = 0; n < 2; n++) expect((await ask(app)).status).toBe(200)
        expect((await ask(app)).status).toBe(503)
      })

      test('of several that refuse, the one that refuses for longest chooses; a block is the limiter’s own', async () => {
        const time = { now: 0 }
        const app = await start({
          store: memoryStore({ clock: () => time.now }),
          limits: [
            perDay(2, { name: 'day', respond: reject({ body: 'tomorrow' }) }),
            gcra({ name: 'fast', limit: 1, window: 1000, respond: reject({ status: 503 }) }),
            slidingLog({ name: 'hour', limit: 2, window: '1h' }),
          ],
          respond: reject({ body: 'own' }),
        })
        expect((await ask(app)).status).toBe(200)
        expect((await ask(app)).status).toBe(503)
        time.now += 1000
        expect((await ask(app)).status).toBe(200)
        expect((await ask(app)).body).toBe('tomorrow')
        await app.limiter.block('everyone', { for: '1h' })
        expect((await ask(app)).body).toBe('own')
      })

      test('a limit that delays leaves what another refuses for longer to that one', async () => {
        const app = await start({
          limits: [gcra({ limit: 1, window: 80, respond: delay() }), perDay(2)],
        })
        const seen: number[] = []
        for (let n = 0; n < 3; n++) seen.push((await ask(app)).status)
        expect(seen).toEqual([200, 200, 429])
      })
    })

    describe('report mode', () => {
      test('decides and charges, and lets everything pass without a word', async () => {
        const refused: boolean[] = []
        const app = await start({
          store: frozen(),
          limit: 2,
          window: '10s',
          mode: 'report',
          onVerdict: (_request: unknown, { allowed }: Verdict) => void refused.push(!allowed),
        })
        for (let n = 0; n < 4; n++) {
          const { status, head } = await ask(app)
          expect(status).toBe(200)
          expect(head).not.toMatch(/ratelimit|retry-after/i)
        }
        expect(refused).toEqual([false, false, true, true])
        expect(app.ran).toMatchObject([
          { allowed: true, reported: true },
          { allowed: true, reported: true },
          { allowed: false, reported: true, reason: 'limited' },
          { allowed: false, reported: true },
        ])
        expect((await app.limiter.peek('everyone')).remaining).toBe(0)
      })

      test('does not wait, hold or shadow; blocks pass too; and it tells the quota on demand', async () => {
        for (const options of [
          { limits: [leakyBucket({ leak: 1, every: '1h', capacity: 2, queue: true })] },
          { limit: 1, window: '1h' as const, respond: delay({ from: 0, by: '5s' }) },
          { limit: 1, window: '1h' as const, respond: tarpit() },
        ]) {
          const app = await start({ store: frozen(), mode: 'report', reportHeaders: true, ...options })
          for (let n = 0; n < 3; n++) {
            const request = await rawRequest(app.port)
            const { status, head } = await request.response
            expect(status).toBe(200)
            expect(head).toMatch(/ratelimit: /i)
            expect(head).not.toMatch(/retry-after/i)
            expect(await request.took).toBeLessThan(3000)
          }
          await app.limiter.block('everyone', { for: '1h' })
          expect((await ask(app)).status).toBe(200)
          expect(app.ran).toHaveLength(4)
        }
      })

      test('enforcePercent enforces a steady share of the keys, which only grows', async () => {
        const enforced = async (enforcePercent: number) => {
          const app = await start({
            name: 'roll-out',
            limit: 0,
            window: '10s',
            enforcePercent,
            key: (_request: unknown, context: HttpContext) => context.header('x-user'),
          })
          const users: number[] = []
          for (let user = 0; user < 60; user++) {
            if ((await ask(app, 'GET', { 'X-User': `user-${user}` })).status === 429) users.push(user)
          }
          return users
        }
        const [none, some, again, more, all] = [
          await enforced(0),
          await enforced(30),
          await enforced(30),
          await enforced(60),
          await enforced(100),
        ]
        expect(none).toEqual([])
        expect(some).toEqual(again)
        expect(some?.length).toBeGreaterThan(8)
        expect(some?.length).toBeLessThan(30)
        expect(more).toEqual(expect.arrayContaining(some as number[]))
        expect(all).toHaveLength(60)
      })
    })

    test.each([
      ['an admitted', 1],
      ['a refused', 0],
    ])('an onVerdict that throws on %s request reaches the error handler once', async (_what, limit) => {
      const onVerdict = () => {
        throw new Error('user function')
      }
      const app = await start({ store: frozen(), limit, window: '10s', onVerdict })
      expect((await ask(app)).status).toBe(500)
      expect(app.errors).toHaveLength(1)
      expect(app.ran).toEqual([])
      expect((await app.limiter.peek('everyone')).remaining).toBe(0)
    })

    const noLog = new Error('no audit log')
    test.each([
      ['rejects', () => Promise.reject(noLog)],
      // biome-ignore lint/suspicious/noThenProperty: a promise of another library
      ['rejects in a way of its own', () => ({ then: (_: unknown, fail: (why: Error) => void) => fail(noLog) })],
    ])('an onVerdict that %s later disturbs nothing but is warned of', async (how, onVerdict) => {
      const policy = `${name}-${how}`.replace(/\W/g, '-')
      let warnings: Error[] = []
      const unhandled = await unhandledDuring(async () => {
        warnings = await warningsDuring(async () => {
          const app = await start({ store: frozen(), name: policy, limit: 1, window: '10s', onVerdict })
          expect([(await ask(app)).status, (await ask(app)).status]).toEqual([200, 429])
          expect(app.errors).toEqual([])
        })
      })
      expect(unhandled).toEqual([])
      const warning = { code: 'SLUICE_LISTENER_FAILED', message: `policy "${policy}": onVerdict: no audit log` }
      expect(warnings.filter(({ message }) => message.includes(`"${policy}"`))).toMatchObject([warning, warning])
    })

    test('nobody waits for an onVerdict', async () => {
      const app = await start({ store: frozen(), limit: 1, window: '10s', onVerdict: () => new Promise(() => {}) })
      expect([(await ask(app)).status, (await ask(app)).status]).toEqual([200, 429])
    })

    test('nobody waits for what a responder does about admitted requests, and what fails there is warned of', async () => {
      const failed = `${name}: no list of the admitted`
      const onAdmitted = () => Promise.reject(new Error(failed)) as never
      let warnings: Error[] = []
      const unhandled = await unhandledDuring(async () => {
        warnings = await warningsDuring(async () => {
          const app = await start({ limit: 1, window: '10s', respond: Object.assign(reject(), { onAdmitted }) })
          expect((await ask(app)).status).toBe(200)
        })
      })
      expect(unhandled).toEqual([])
      expect(warnings.map(({ message }) => message)).toContain(`onAdmitted: ${failed}`)
    })

    test.each([
      [undefined, 'undefined'],
      [null, 'null'],
      ['', '""'],
    ])('a request whose key is %j draws a warning that says what to do about it', async (missing, shown) => {
      const app = await start({ limit: 1, window: '10s', key: () => missing })
      const warnings = await warningsDuring(async () => expect((await ask(app)).status).toBe(400))
      const message =
        `policy "default": key: expected a non-empty string or a number, got ${shown} ` +
        '(with the option anonymous, "by-ip" or "skip", a request may have none)'
      expect(warnings.map((warning) => warning.message)).toContainEqual(expect.stringContaining(message))
    })

    test('a key that a promise stands for is an error, which tells of it, and its rejection ends nothing', async () => {
      const key = () => Promise.reject(new Error('no sessions')) as never
      const unhandled = await unhandledDuring(async () => {
        const app = await start({ limit: 1, window: '10s', key })
        expect((await ask(app)).status).toBe(500)
        expect(app.errors).toMatchObject([{ code: 'INVALID_KEY', message: expect.stringMatching(/got a promise$/) }])
      })
      expect(unhandled).toEqual([])
    })

    test('what is skipped is neither told of nor delayed', async () => {
      const told: Verdict[] = []
      const app = await start({
        store: frozen(),
        limit: 0,
        window: '10s',
        skip: () => true,
        respond: tarpit(),
        onVerdict: (_request: unknown, verdict: Verdict) => void told.push(verdict),
      })
      expect((await ask(app)).status).toBe(200)
      expect([told, app.ran]).toEqual([[], [undefined]])
    })
  })
}

const html = (body: string) => ({ headers: { 'Content-Type': 'text/html; charset=utf-8' }, body })

/** The fields of a head, in any order. */
function fieldsOf(head: string): string[] {
  return head.split('\r\n').sort()
}

/** Waits until a request that was just sent has come to stand where it will. */
async function settled(sending: Promise<RawRequest>): Promise<RawRequest> {
  const request = await sending
  await sleep(25)
  return request
}

function* pieces(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
