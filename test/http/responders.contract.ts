import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
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
import { until } from '../support/until.js'
import type { AnsweringApp, AnsweringFactory, Handler } from './support/answers.js'
import type { AnyOptions } from './support/app.js'
import { type RawRequest, rawRequest } from './support/raw.js'

/** Only what hangs takes so long, also on a machine that does many other things. */
const HANGS_MS = 60_000

interface Running extends AnsweringApp {
  readonly port: number
  /** Verdicts of the requests whose handler ran. */
  readonly ran: (Verdict | undefined)[]
  /** The server's ends of its connections, by the client's port. */
  readonly sockets: ReadonlyMap<number, Socket>
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
      const sockets = new Map<number, Socket>()
      app.server.on('connection', (socket: Socket) => sockets.set(socket.remotePort as number, socket))
      const started = { ...app, ran, sockets, port: (app.server.address() as AddressInfo).port }
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
    const ask = async ({ port }: Running, method?: string, headers?: Record<string, string>, target?: string) =>
      (await rawRequest(port, method, headers, target)).response
    const frozen = () => memoryStore({ clock: () => 1_000_000 })
    /** A store whose time is the test's: requests wait until it says that there is room, however long it takes to send them. */
    const timed = () => {
      const time = { now: 0 }
      return { time, store: memoryStore({ clock: () => time.now }) }
    }
    /** A store whose time stands still until `go`, and runs from then on. */
    const held = () => {
      let wentAt: number | undefined
      const clock = () => (wentAt === undefined ? 0 : Math.floor(performance.now() - wentAt))
      const go = () => {
        wentAt = performance.now()
      }
      return { store: memoryStore({ clock }), go }
    }

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

      test('answers HEAD with the same head and no body', async () => {
        const respond = shadow({ body: { a: 1 } })
        const app = await start({ ...limit, store: frozen(), respond }, () => ({ body: { a: 1 } }))
        const real = await ask(app)
        const shadowed = await ask(app, 'HEAD')
        expect(shadowed.body).toBe('')
        expect(fieldsOf(shadowed.head)).toEqual(fieldsOf(real.head))
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
        for (let n = 0; n < 4; n++) requests.push(await sent(app))
        const first = requests[0] as RawRequest
        const ends = await Promise.all(requests.map(async (each) => each.sentAt + (await each.took) - first.sentAt))
        for (const [i, end] of ends.entries()) {
          expect(end).toBeGreaterThan(i * 120 - 5)
          expect((await requests[i]?.response)?.status).toBe(200)
        }
        expect(ends[3]).toBeLessThan(HANGS_MS)
        expect(app.ran.map((verdict) => [verdict?.allowed, verdict?.cost])).toEqual(Array(4).fill([true, 1]))
        expect(verdicts).toEqual(app.ran)
        expect((await app.limiter.peek('everyone')).resetAfterMs).toBeLessThanOrEqual(120)
      })

      test('refuses at once what would take longer, and says when there will be room behind the others', async () => {
        // Its time stands still, so that the one that waits never gets further.
        const app = await start({
          store: frozen(),
          limits: [gcra({ limit: 1, window: '20s' })],
          respond: delay({ max: '30s' }),
        })
        await ask(app)
        const waiting = await sent(app)
        const { status, head } = await ask(app)
        expect(status).toBe(429)
        expect(head).toMatch(/retry-after: 40/i)
        expect(waiting.socket.bytesRead).toBe(0)
        expect(app.ran).toHaveLength(1)
      })

      test('no request overtakes those that wait', async () => {
        const { time, store } = timed()
        const app = await start({ store, limits: [gcra({ limit: 1, window: 300 })], respond: delay() })
        await ask(app)
        const first = await sent(app)
        await sleep(50)
        // There is room now, but the first in the queue has not woken up yet.
        time.now = 300
        const second = await sent(app)
        expect((await first.response).status).toBe(200)
        expect(app.ran).toHaveLength(2)
        time.now = 600
        expect((await second.response).status).toBe(200)
      })

      test('a client that leaves gives its place back and its handler never runs', async () => {
        const { time, store } = timed()
        const app = await start({ store, limits: [gcra({ limit: 1, window: 100 })], respond: delay() })
        await ask(app)
        const leaving = await sent(app)
        const staying = await sent(app)
        await leave(app, leaving)
        // Behind the other it would have been 200, which never comes.
        time.now = 100
        expect((await staying.response).status).toBe(200)
        expect(app.ran).toHaveLength(2)
        expect(app.errors).toEqual([])
      })

      test('a client that leaves while the store admits it gives that back', async () => {
        const { time, store } = timed()
        let gate: Promise<void> | undefined
        let asked = 0
        const late = {
          decide: async (ask: never) => {
            const answer = store.decide(ask)
            if (gate) asked++
            await gate
            return answer
          },
        } as never
        const app = await start({ store: late, limits: [gcra({ limit: 1, window: 100 })], respond: delay() })
        await ask(app)
        const leaving = await sent(app)
        // Admitted in the store, which has not answered yet.
        time.now = 100
        let open = () => {}
        gate = new Promise((resolve) => {
          open = resolve
        })
        await until('the store is asked', () => asked === 1)
        await leave(app, leaving)
        open()
        gate = undefined
        await until('it is refunded', async () => (await app.limiter.peek('everyone')).remaining === 1)
        expect(app.ran).toHaveLength(1)
        expect(app.errors).toEqual([])
      })

      test('from some units on, admitted requests are slowed down, by more and more', async () => {
        const app = await start({
          store: frozen(),
          limits: [gcra({ limit: 4, window: '10s', respond: delay({ from: 2, by: 300 }) })],
        })
        for (const n of [1, 2]) {
          const { response } = await sent(app)
          // Without waiting for anything.
          expect(app.ran).toHaveLength(n)
          await response
        }
        for (const least of [300, 600]) {
          const took = await (await sent(app)).took
          expect(took).toBeGreaterThan(least - 3)
          expect(took).toBeLessThan(HANGS_MS)
        }
        expect(app.ran).toHaveLength(4)
      })

      test('a slowed client that leaves gives its charge back', async () => {
        const app = await start({ store: frozen(), limit: 4, window: '10s', respond: delay({ from: 0, by: '5s' }) })
        const leaving = await sent(app)
        expect((await app.limiter.peek('everyone')).remaining).toBe(3)
        leaving.socket.destroy()
        await until('it is refunded', async () => (await app.limiter.peek('everyone')).remaining === 4)
        expect(app.ran).toEqual([])
      })

      test('holds so many at most, and refuses others at once, by another responder', async () => {
        const { store, go } = held()
        const app = await start({
          store,
          limits: [gcra({ limit: 1, window: 300 })],
          respond: delay({ maxConnections: 1, otherwise: reject({ status: 503 }) }),
        })
        await ask(app)
        const waiting = await sent(app)
        expect((await ask(app)).status).toBe(503)
        go()
        expect((await waiting.response).status).toBe(200)
      })

      test('refuses at once what can never be admitted, and what is blocked', async () => {
        const app = await start({ store: frozen(), limit: 1, window: 300, cost: 2, respond: delay() })
        expect((await ask(app)).status).toBe(429)
        await app.limiter.block('everyone', { for: 200 })
        expect((await ask(app)).status).toBe(429)
        expect(app.ran).toEqual([])
      })

      test('asking again charges nothing where refusals are charged', async () => {
        const app = await start({ limits: [gcra({ limit: 2, window: 400 })], onDeny: 'charge', respond: delay() })
        const requests: RawRequest[] = []
        for (let n = 0; n < 4; n++) requests.push(await sent(app))
        for (const { response } of requests) expect((await response).status).toBe(200)
      })
    })

    describe('queue', () => {
      /** However long it takes to send all. */
      const patient = { ageEvery: '1h', maxWait: '1m' } as const
      const oneEach = (window: number) => [gcra({ limit: 1, window })]
      const byHeader = (_request: unknown, context: HttpContext) => Number(context.header('x-class') ?? 0)
      const order = async (app: Running, go: () => void, classes: readonly number[]) => {
        const left: number[] = []
        const requests: RawRequest[] = []
        for (const own of classes) {
          const request = await sent(app, { 'X-Class': String(own) })
          void request.response.then(({ status }) => left.push(status === 200 ? own : -status))
          requests.push(request)
        }
        go()
        await Promise.all(requests.map(({ response }) => response))
        return left
      }

      test('serves higher classes first, and equals as they came', async () => {
        const { store, go } = held()
        const app = await start({ store, limits: oneEach(300), respond: queue({ priority: byHeader, ...patient }) })
        await ask(app)
        expect(await order(app, go, [0, 1, 0, 2, 1])).toEqual([2, 1, 1, 0, 0])
        expect(app.ran).toHaveLength(6)
      })

      test('never lets a lower class overtake where ageEvery is infinite', async () => {
        const { store, go } = held()
        const never = { ageEvery: Number.POSITIVE_INFINITY, maxWait: Number.POSITIVE_INFINITY }
        const app = await start({ store, limits: oneEach(300), respond: queue({ priority: byHeader, ...never }) })
        await ask(app)
        expect(await order(app, go, [0, 1, 0, 2, -1, 1.5, 1])).toEqual([2, 1.5, 1, 1, 0, 0, -1])
      })

      test("goes by the limiter's own priority where it names none", async () => {
        const { store, go } = held()
        const app = await start({ store, limits: oneEach(150), priority: byHeader, respond: queue(patient) })
        await ask(app)
        expect(await order(app, go, [0, 1.5, 0, 2, 1])).toEqual([2, 1.5, 1, 0, 0])
      })

      test('lets no request starve: waiting raises a request until it is first', async () => {
        const { store, go } = held()
        const app = await start({
          store,
          limits: oneEach(150),
          // Far longer than it takes to send the first three.
          respond: queue({
            priority: async (r: unknown, c: HttpContext) => byHeader(r, c),
            ageEvery: 3000,
            maxWait: '1m',
          }),
        })
        await ask(app)
        const left: string[] = []
        const responses: Promise<unknown>[] = []
        const send = async (own: number, what: string) => {
          const request = await sent(app, { 'X-Class': String(own) })
          responses.push(request.response.then(() => left.push(what)))
        }
        await send(0, 'low')
        await send(1, 'soon after')
        await send(1, 'soon after')
        await sleep(3050)
        // By now the low one is worth as much as these, and came first.
        await send(1, 'late')
        await send(1, 'late')
        go()
        await Promise.all(responses)
        expect(left).toEqual(['soon after', 'soon after', 'low', 'late', 'late'])
      })

      const byUser = (_request: unknown, context: HttpContext) => context.header('x-user')
      const userAndAll = (user: number, all: number) => [
        gcra({ name: 'user', limit: 1, window: user, key: byUser }),
        gcra({ name: 'all', limit: 1, window: all, key: everyone() }),
      ]

      test('classes count among all requests that wait for a limit, of whichever client', async () => {
        const { store, go } = held()
        const app = await start({
          store,
          limits: userAndAll(10, 300),
          respond: queue({ priority: byHeader, ...patient }),
        })
        const left: string[] = []
        const send = async (user: string, own: number) => {
          const request = await sent(app, { 'X-User': user, 'X-Class': String(own) })
          void request.response.then(() => left.push(user))
        }
        for (const [user, own] of [
          ['ann', 0],
          ['bob', 0],
          ['cid', 1],
          ['dan', 2],
        ] as const)
          await send(user, own)
        go()
        await until('all have left', () => left.length === 4)
        expect(left).toEqual(['ann', 'dan', 'cid', 'bob'])
      })

      test('a client that waits for a limit of its own holds up no other', async () => {
        const { time, store } = timed()
        const app = await start({ store, limits: userAndAll(200, 60), respond: queue() })
        const send = async (user: string) => sent(app, { 'X-User': user })
        const first = await send('ann')
        const second = await send('ann')
        const third = await send('bob')
        time.now = 60
        for (const { response } of [first, third]) expect((await response).status).toBe(200)
        expect(app.ran).toHaveLength(2)
        time.now = 200
        expect((await second.response).status).toBe(200)
      })

      test('refuses at once when full, with 503 and when to come back', async () => {
        const app = await start({ store: frozen(), limits: oneEach(2000), respond: queue({ size: 2 }) })
        await ask(app)
        const waiting = [await sent(app), await sent(app)] as const
        const { status, head, body } = await ask(app)
        expect(status).toBe(503)
        expect(head).toMatch(/retry-after: 6/i)
        expect(head).toMatch(/ratelimit: "[^"]+";r=0;t=6/i)
        expect(body).toContain('#temporary-reduced-capacity')
        // A place comes free when a client leaves.
        await leave(app, waiting[0])
        const next = await sent(app)
        expect(next.socket.destroyed).toBe(false)
        expect(app.ran).toHaveLength(1)
      })

      test('a client that comes back when it was told to is admitted at once', async () => {
        const { time, store } = timed()
        const app = await start({ store, limits: oneEach(280), respond: queue({ size: 2 }) })
        await ask(app)
        const waiting = [await sent(app), await sent(app)]
        const { status, head } = await ask(app)
        expect(status).toBe(503)
        const [, seconds] = /retry-after: (\d+)/i.exec(head) ?? []
        expect(seconds).toBe('1')
        for (const { response } of waiting) {
          time.now += 280
          expect((await response).status).toBe(200)
        }
        time.now = Number(seconds) * 1000
        const again = await sent(app)
        expect(app.ran).toHaveLength(4)
        expect((await again.response).status).toBe(200)
      })

      test('refuses a request that would wait for too long, also when others push in', async () => {
        const { store, go } = held()
        const app = await start({
          store,
          // The third in the queue would wait for 6 s; the second has nearly two to spare.
          limits: oneEach(2000),
          respond: queue({ priority: byHeader, maxWait: 5900, otherwise: reject({ body: 'later' }) }),
        })
        await ask(app)
        // In no order: a refusal is as quick as the answer to the request served in that moment.
        expect((await order(app, go, [0, 0, 1, 1])).sort()).toEqual([-429, -429, 1, 1])
      })

      test('a wait for a permit ends as soon as one is freed', async () => {
        const release: (() => void)[] = []
        const app = await start(
          { limits: [concurrency({ limit: 1 })], respond: queue() },
          () => new Promise((resolve) => release.push(() => resolve({ body: 'done' }))),
        )
        const first = await rawRequest(app.port)
        await until('the first is in flight', () => release.length === 1)
        const second = await sent(app)
        expect(release).toHaveLength(1)
        release[0]?.()
        expect((await first.response).status).toBe(200)
        await until('the second is in flight', () => release.length === 2)
        release[1]?.()
        expect((await second.response).status).toBe(200)
        await until('it is refunded', async () => (await app.limiter.peek('everyone')).remaining === 1)
      })

      test('turns of a leaky bucket that queues by itself come after the queue', async () => {
        const app = await start({
          limits: [leakyBucket({ leak: 1, every: 100, capacity: 2, queue: true })],
          respond: queue(),
        })
        const requests: RawRequest[] = []
        for (let n = 0; n < 5; n++) requests.push(await sent(app))
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
      const bytes = randomBytes(4096 * 1024 + 32 * 1024)
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
          { ...slowed, respond: throttle({ bytesPerSecond: 32 * 1024, after: 4096 * 1024 }) },
          () => ({ headers: { ...binary, 'Content-Length': String(bytes.length) }, body: body() }),
        )
        const request = await rawRequest(app.port)
        let received = 0
        let tooEarly = 0
        request.socket.on('data', (chunk) => {
          received += chunk.length
          const fairShare = 4096 * 1024 + ((performance.now() - request.sentAt) / 1000) * 32 * 1024
          // The head, a slice at the start, and one to catch up with.
          tooEarly = Math.max(tooEarly, received - fairShare - 5 * 1024)
        })
        const response = await request.response
        expect(response.status).toBe(200)
        expect(digest(response.body)).toBe(digest(bytes))
        expect(tooEarly).toBe(0)
        // 32 KiB at 32 KiB/s; without a start at full speed it would be 129 s.
        expect(await request.took).toBeGreaterThan(900)
        expect(await request.took).toBeLessThan(HANGS_MS)
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
        await until('some has come', () => request.socket.bytesRead > 15_000)
        expect(performance.now() - request.sentAt).toBeGreaterThan(200)
        expect(made - request.socket.bytesRead).toBeLessThan(150_000)
        await leave(app, request)
        await sleep(100)
        const then = made
        await sleep(150)
        expect(made).toBe(then)
      })

      test('slows so many responses at once, refuses others, and frees its place when one ends or its client leaves', async () => {
        const respond = throttle({ bytesPerSecond: 2000, maxConnections: 2, otherwise: reject({ status: 503 }) })
        // Of a limit that is never out of reach, so that 503 is the responder's to choose.
        const app = await start({ store: frozen(), limit: 1, window: '1s', headers: false, respond }, () => ({
          body: 'x'.repeat(1000),
        }))
        await ask(app)
        const ending = await rawRequest(app.port)
        const leaving = await rawRequest(app.port)
        await expect.poll(() => app.ran.length).toBe(3)
        expect((await ask(app)).status).toBe(503)
        expect((await ask(app, 'HEAD')).status).toBe(200)
        leaving.socket.destroy()
        await leaving.response
        await expect.poll(async () => (await ask(app)).status).toBe(200)
        expect((await ending.response).status).toBe(200)
        const both = await Promise.all([ask(app), ask(app)])
        expect(both.map(({ status }) => status)).toEqual([200, 200])
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
      const full = { limit: 0, window: '10s' } as const

      test('holds so many connections, answers others at once, and frees who leaves', async () => {
        const app = await start({ ...full, store: frozen(), respond: tarpit({ for: '1m', maxConnections: 2 }) })
        const caught = [await sent(app), await sent(app)] as const
        expect((await ask(app)).status).toBe(429)
        await leave(app, caught[0])
        const inItsPlace = await sent(app)
        expect((await ask(app)).status).toBe(429)
        expect([caught[1].socket.bytesRead, inItsPlace.socket.bytesRead]).toEqual([0, 0])
        expect(app.errors).toEqual([])
      })

      test('holds a connection for so long, and refuses it then', async () => {
        const app = await start({ ...full, store: frozen(), respond: tarpit({ for: 500 }) })
        const request = await sent(app)
        expect((await request.response).status).toBe(429)
        expect(await request.took).toBeGreaterThan(490)
      })

      test('does not keep a server from closing for longer than it holds', async () => {
        const app = await start({ store: frozen(), limit: 0, window: '10s', respond: tarpit({ for: 200 }) })
        const held = await sent(app)
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
              : { status: 418, headers: [['X-Tea', 'yes']], body: 'pot', showsQuota: false },
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
          { limit: 1, window: '1h' as const, respond: delay({ from: 0, by: '10m' }) },
          { limit: 1, window: '1h' as const, respond: tarpit({ for: '1m' }) },
        ]) {
          const app = await start({ store: frozen(), mode: 'report', reportHeaders: true, ...options })
          for (let n = 0; n < 3; n++) {
            const { status, head } = await ask(app)
            expect(status).toBe(200)
            expect(head).toMatch(/ratelimit: /i)
            expect(head).not.toMatch(/retry-after/i)
          }
          await app.limiter.block('everyone', { for: '1h' })
          expect((await ask(app)).status).toBe(200)
          expect(app.ran).toHaveLength(4)
        }
      })

      test('enforcePercent enforces a steady share of the keys, which only grows', async () => {
        const enforced = async (enforcePercent: number, count = 60) => {
          const app = await start({
            name: 'roll-out',
            limit: 0,
            window: '10s',
            enforcePercent,
            key: (_request: unknown, context: HttpContext) => context.header('x-user'),
          })
          const users = Array.from({ length: count }, (_, user) => user)
          const statuses = await Promise.all(
            users.map(async (user) => (await ask(app, 'GET', { 'X-User': `user-${user}` })).status),
          )
          return users.filter((user) => statuses[user] === 429)
        }
        const [none, some, again, more, all] = [
          await enforced(0, 10),
          await enforced(30),
          await enforced(30),
          await enforced(60),
          await enforced(100, 10),
        ]
        expect(none).toEqual([])
        expect(some).toEqual(again)
        expect(some?.length).toBeGreaterThan(8)
        expect(some?.length).toBeLessThan(30)
        expect(more).toEqual(expect.arrayContaining(some as number[]))
        expect(all).toHaveLength(10)
      })
    })

    describe('enforceSalt', () => {
      const enforced = async (name: string, enforceSalt: string) => {
        const key = (_request: unknown, context: HttpContext) => context.header('x-user')
        const app = await start({ name, limit: 0, window: '10s', enforcePercent: 50, enforceSalt, key })
        const users = Array.from({ length: 24 }, (_, user) => `user-${user}`)
        const statuses = await Promise.all(
          users.map(async (user) => (await ask(app, 'GET', { 'X-User': user })).status),
        )
        return users.filter((_, i) => statuses[i] === 429)
      }

      test('says which keys are enforced, the same over policies, and others for another salt', async () => {
        const [one, again, other] = [
          await enforced('first', 'a secret'),
          await enforced('second', 'a secret'),
          await enforced('first', 'another secret'),
        ]
        expect(one).toEqual(again)
        expect(one).not.toEqual(other)
        for (const users of [one, other]) {
          expect(users?.length).toBeGreaterThan(5)
          expect(users?.length).toBeLessThan(19)
        }
      })
    })

    describe('Accept of a refused request', () => {
      const far = (last: string) => `${'image/a;q=0.1, '.repeat(40)}${last}`
      test.each<[string, string, RegExp]>([
        ['within reach', 'text/html, application/json', /problem\+json/],
        ['beyond the first 32 entries', far('application/json'), /text\/plain/],
        ['beyond the first 1,000 characters', `a/${'a'.repeat(1000)}, application/json`, /text\/plain/],
        ['cut by the end of those', `${'a/'.padEnd(990, 'a')}, application/json`, /text\/plain/],
        ['of 15 kB', far('').repeat(24), /text\/plain/],
      ])('is read as far as is said: %s', async (_what, accept, type) => {
        const app = await start({ limit: 0, window: '10s' })
        const { status, head } = await ask(app, 'GET', { Accept: accept })
        expect(status).toBe(429)
        expect(head).toMatch(type)
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

    test('no request waits for an onVerdict', async () => {
      const app = await start({ store: frozen(), limit: 1, window: '10s', onVerdict: () => new Promise(() => {}) })
      expect([(await ask(app)).status, (await ask(app)).status]).toEqual([200, 429])
    })

    test('no request waits for what a responder does about admitted requests, and what fails there is warned of', async () => {
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

    test('a key, a limit, a window, a tier and a priority that answer later are waited for', async () => {
      const later = async <T>(value: T) => {
        await new Promise(setImmediate)
        return value
      }
      const own = gcra({ limit: () => later(2), window: () => later('1h'), reserve: 1 })
      const app = await start({
        store: frozen(),
        key: (_request: unknown, context: HttpContext) => later(context.header('x-user')),
        tiers: { free: [own] },
        tier: () => later('free'),
        priority: (_request: unknown, context: HttpContext) => later(context.header('x-user') === 'ann' ? 1 : 0),
      })
      const status = async (user: string) => (await ask(app, 'GET', { 'X-User': user })).status
      expect([await status('ann'), await status('ann'), await status('ann')]).toEqual([200, 200, 429])
      expect([await status('bob'), await status('bob')]).toEqual([200, 429])
      expect(app.ran[0]).toMatchObject({ tier: 'free', priority: 1 })
      expect(app.errors).toEqual([])
    })

    test('a promised key that rejects reaches the error handler as it is, and ends nothing', async () => {
      const key = () => Promise.reject(new Error('no sessions'))
      const unhandled = await unhandledDuring(async () => {
        const app = await start({ limit: 1, window: '10s', key })
        expect((await ask(app)).status).toBe(500)
        expect(app.errors).toMatchObject([{ message: 'no sessions' }])
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

/** Sends a request, and waits until the server has taken it as far as it goes without waiting. */
async function sent(app: Running, headers?: Record<string, string>): Promise<RawRequest> {
  const arrived = once(app.server, 'request')
  const request = await rawRequest(app.port, 'GET', headers)
  await arrived
  await turns()
  return request
}

/** Ends a client's connection, and waits until the server has noticed. */
async function leave(app: Running, { socket }: RawRequest): Promise<void> {
  const there = app.sockets.get(socket.localPort as number) as Socket
  // Not `once` of node:events: what is being written to it may fail, which is no matter.
  const gone = there.closed ? undefined : new Promise((resolve) => there.once('close', resolve))
  socket.destroy()
  await gone
  await turns()
}

/** Everything that does not wait for a timer or a socket is done by then. */
async function turns(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve))
}

function* pieces(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
