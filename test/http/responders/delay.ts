import { setTimeout as sleep } from 'node:timers/promises'
import { delay, gcra, reject, type Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import type { RawRequest } from '../support/raw.js'
import { ask, frozen, HANGS_MS, held, leave, type Start, sent, timed } from './apps.js'

export function delayTests(start: Start): void {
  describe('delay', () => {
    test('delay admits requests over the limit once there is room, in order, each charged once', async () => {
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

    test('delay refuses a wait longer than max at once, with a Retry-After behind the waiting requests', async () => {
      // Its time stands still, so the waiting request stays in the queue.
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

    test('with delay no request overtakes those that wait', async () => {
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

    test('a client that leaves a delay gives up its turn, and its handler never runs', async () => {
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

    test('a client that leaves while the store admits it is refunded', async () => {
      const { time, store } = timed()
      let gate: Promise<void> | undefined
      let calls = 0
      const late = {
        decide: async (request: never) => {
          const result = store.decide(request)
          if (gate) calls++
          await gate
          return result
        },
      } as never
      const app = await start({ store: late, limits: [gcra({ limit: 1, window: 100 })], respond: delay() })
      await ask(app)
      const leaving = await sent(app)
      // Admitted by the store, which has not responded yet.
      time.now = 100
      let open = () => {}
      gate = new Promise((resolve) => {
        open = resolve
      })
      await until('the store is called', () => calls === 1)
      await leave(app, leaving)
      open()
      gate = undefined
      await until('the charge is refunded', async () => (await app.limiter.peek('everyone')).remaining === 1)
      expect(app.ran).toHaveLength(1)
      expect(app.errors).toEqual([])
    })

    test('delay with from and by slows admitted requests down, by more and more', async () => {
      const app = await start({
        store: frozen(),
        limits: [gcra({ limit: 4, window: '10s', respond: delay({ from: 2, by: 300 }) })],
      })
      for (const n of [1, 2]) {
        const { response } = await sent(app)
        // Without waiting.
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

    test('a delayed client that leaves is refunded', async () => {
      const app = await start({ store: frozen(), limit: 4, window: '10s', respond: delay({ from: 0, by: '5s' }) })
      const leaving = await sent(app)
      expect((await app.limiter.peek('everyone')).remaining).toBe(3)
      leaving.socket.destroy()
      await until('the charge is refunded', async () => (await app.limiter.peek('everyone')).remaining === 4)
      expect(app.ran).toEqual([])
    })

    test('delay holds at most maxConnections, and refuses others at once by `otherwise`', async () => {
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

    test('delay refuses impossible costs and blocked clients at once', async () => {
      const app = await start({ store: frozen(), limit: 1, window: 300, cost: 2, respond: delay() })
      expect((await ask(app)).status).toBe(429)
      await app.limiter.block('everyone', { for: 200 })
      expect((await ask(app)).status).toBe(429)
      expect(app.ran).toEqual([])
    })

    test('with onDeny: charge, the retries of a delay charge nothing', async () => {
      const app = await start({ limits: [gcra({ limit: 2, window: 400 })], onDeny: 'charge', respond: delay() })
      const requests: RawRequest[] = []
      for (let n = 0; n < 4; n++) requests.push(await sent(app))
      for (const { response } of requests) expect((await response).status).toBe(200)
    })
  })
}
