import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, everyone, gcra, type HttpContext, leakyBucket, queue, reject } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { type RawRequest, rawRequest } from '../support/raw.js'
import { ask, frozen, held, leave, type Running, type Start, sent, timed } from './apps.js'

export function queueTests(start: Start): void {
  describe('queue', () => {
    /** Long enough to send all requests. */
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

    test('queue serves higher priorities first, and equal ones in order of arrival', async () => {
      const { store, go } = held()
      const app = await start({ store, limits: oneEach(300), respond: queue({ priority: byHeader, ...patient }) })
      await ask(app)
      expect(await order(app, go, [0, 1, 0, 2, 1])).toEqual([2, 1, 1, 0, 0])
      expect(app.ran).toHaveLength(6)
    })

    test('with an infinite ageEvery no lower priority overtakes', async () => {
      const { store, go } = held()
      const never = { ageEvery: Number.POSITIVE_INFINITY, maxWait: Number.POSITIVE_INFINITY }
      const app = await start({ store, limits: oneEach(300), respond: queue({ priority: byHeader, ...never }) })
      await ask(app)
      expect(await order(app, go, [0, 1, 0, 2, -1, 1.5, 1])).toEqual([2, 1.5, 1, 1, 0, 0, -1])
    })

    test("queue uses the limiter's priority by default", async () => {
      const { store, go } = held()
      const app = await start({ store, limits: oneEach(150), priority: byHeader, respond: queue(patient) })
      await ask(app)
      expect(await order(app, go, [0, 1.5, 0, 2, 1])).toEqual([2, 1.5, 1, 0, 0])
    })

    test('with ageEvery a waiting request rises until it is first', async () => {
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
      // The low one has risen to the priority of these, and came first.
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

    test('priorities apply among all requests that wait for a limit, of any client', async () => {
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

    test('a client that waits for its own limit delays no other', async () => {
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

    test('a full queue refuses at once, with 503 and Retry-After', async () => {
      const app = await start({ store: frozen(), limits: oneEach(2000), respond: queue({ size: 2 }) })
      await ask(app)
      const waiting = [await sent(app), await sent(app)] as const
      const { status, head, body } = await ask(app)
      expect(status).toBe(503)
      expect(head).toMatch(/retry-after: 6/i)
      expect(head).toMatch(/ratelimit: "[^"]+";r=0;t=6/i)
      expect(body).toContain('#temporary-reduced-capacity')
      // A client that leaves makes room.
      await leave(app, waiting[0])
      const next = await sent(app)
      expect(next.socket.destroyed).toBe(false)
      expect(app.ran).toHaveLength(1)
    })

    test('a client that returns after Retry-After of a full queue is admitted at once', async () => {
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

    test('queue refuses a request that would wait longer than maxWait, also when others overtake it', async () => {
      const { store, go } = held()
      const app = await start({
        store,
        // The third in the queue would wait for 6 s; the second has nearly two to spare.
        limits: oneEach(2000),
        respond: queue({ priority: byHeader, maxWait: 5900, otherwise: reject({ body: 'later' }) }),
      })
      await ask(app)
      // In no order: a refusal is as quick as the response to the request served at that moment.
      expect((await order(app, go, [0, 0, 1, 1])).sort()).toEqual([-429, -429, 1, 1])
    })

    test('a wait for a permit ends as soon as one is released', async () => {
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
      await until('the permit is released', async () => (await app.limiter.peek('everyone')).remaining === 1)
    })

    test('turns of a queueing leaky bucket come after the queue', async () => {
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
}
