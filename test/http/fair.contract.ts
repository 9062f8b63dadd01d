import { randomUUID } from 'node:crypto'
import {
  byHeader,
  concurrency,
  createLimiter,
  delay,
  everyone,
  type HttpContext,
  keyed,
  leakyBucket,
  type QueueOptions,
  queue,
  type Responder,
  type Store,
} from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'
import { type AppFactory, type RunningApp, run } from './support/app.js'

/** Clients that wait for one key take turns, on every adapter and every store. */
export function fairContract(name: string, factory: AppFactory, makeStore: () => Store): void {
  describe(name, () => {
    const running: RunningApp[] = []
    const stores: Store[] = []
    afterEach(async () => {
      for (const app of running.splice(0)) await app.close()
      for (const store of stores.splice(0)) await store.close()
    })

    /**
     * An app of one request at a time, of which the first is served when `go` is called. Each is sent once the last has
     * joined the queue.
     */
    const start = async (
      options: QueueOptions<unknown> = {},
      responder?: (hasJoined: () => void) => Responder<unknown>,
    ) => {
      let joined = 0
      const priority = () => {
        joined++
        return 0
      }
      const store = makeStore()
      stores.push(store)
      const limits = [concurrency({ limit: 1, ttl: '1h', key: everyone() })]
      const line = { name: `fair-${randomUUID()}`, store, limits }
      const respond = responder?.(() => void joined++) ?? queue<unknown>({ maxWait: '1m', priority, ...options })
      const app = await run(factory, {
        trustProxy: true,
        routes: { '/': { limiters: [{ ...line, respond }] } },
      })
      running.push(app)
      const holder = createLimiter(line)
      const taken = await holder.consume('all')
      expect(taken.allowed).toBe(true)

      const left: string[] = []
      const responses: Promise<void>[] = []
      const send = async (from: string, headers: Record<string, string> = {}) => {
        const before = joined
        const response = fetch(app.url, { headers: { 'x-forwarded-for': from, ...headers } })
        responses.push(
          response.then(async (answer) => {
            await answer.text()
            left.push(answer.status === 200 ? from : `${from}: ${answer.status}`)
          }),
        )
        await until(`${from} has joined`, () => joined > before)
      }
      const go = async () => {
        await holder.release(taken)
        await Promise.all(responses)
      }
      return { left, send, go }
    }
    const [ann, bob] = ['192.0.2.1', '192.0.2.2']

    test('after twenty requests of one client, one of another is served second', async () => {
      const { left, send, go } = await start()
      for (let i = 0; i < 20; i++) await send(ann)
      await send(bob)
      await go()
      expect(left).toEqual([ann, bob, ...new Array(19).fill(ann)])
    })

    test('behind delay(), one request of another client is served second', async () => {
      const client = (hasJoined: () => void) =>
        keyed('client', (_request: unknown, context) => {
          hasJoined()
          return context.header('x-forwarded-for')
        })
      const { left, send, go } = await start({}, (hasJoined) => delay({ max: '1m', fairBy: client(hasJoined) }))
      for (let i = 0; i < 20; i++) await send(ann)
      await send(bob)
      await go()
      expect(left).toEqual([ann, bob, ...new Array(19).fill(ann)])
    })

    test('turns of a queueing limit are exchanged between addresses', async () => {
      // All have to arrive before the first of them is served: the slower the machine, the more is charged ahead of
      // them.
      for (let aheadMs = 1000; ; aheadMs *= 2) {
        const left = await servedOf([...new Array(20).fill(ann), bob], aheadMs)
        if (left === undefined) continue
        expect(left).toEqual([ann, bob, ...new Array(19).fill(ann)])
        break
      }
    })

    /**
     * The order in which a leaky bucket served the clients; undefined if the time did not suffice for all to arrive
     * before.
     */
    const servedOf = async (froms: readonly string[], aheadMs: number): Promise<string[] | undefined> => {
      const store = makeStore()
      stores.push(store)
      const limits = [leakyBucket({ leak: 100, every: '1s', capacity: 100_000, queue: true, key: everyone() })]
      const line = { name: `booked-${randomUUID()}`, store, limits }
      let arrived = 0
      const cost = () => {
        arrived++
        return 1
      }
      // Responses may be read in another order than they were sent.
      const served: string[] = []
      const onVerdict = (_request: unknown, _verdict: unknown, context: HttpContext<unknown>) =>
        void served.push(String(context.header('x-forwarded-for')))
      const limiters = [{ ...line, cost, onVerdict }]
      const app = await run(factory, { trustProxy: true, routes: { '/': { limiters } } })
      running.push(app)
      const began = performance.now()
      await createLimiter(line).consume('all', { cost: aheadMs / 10 })
      const responses: Promise<Response>[] = []
      for (const from of froms) {
        const before = arrived
        responses.push(fetch(app.url, { headers: { 'x-forwarded-for': from } }))
        await until(`${from} has arrived`, () => arrived > before)
      }
      const tookMs = performance.now() - began
      for (const response of await Promise.all(responses)) expect(response.status).toBe(200)
      return tookMs < aheadMs / 2 ? served : undefined
    }

    test.each([
      ['a key function', byHeader('x-user'), ['ann 1', 'bob 1', 'ann 2', 'bob 2', 'ann 3']],
      ['false', false as const, ['ann 1', 'ann 2', 'ann 3', 'bob 1', 'bob 2']],
    ])('clients take turns by fairBy: %s', async (_what, fairBy, expected) => {
      const { left, send, go } = await start({ fairBy })
      for (const who of ['ann 1', 'ann 2', 'ann 3', 'bob 1', 'bob 2']) await send(who, { 'x-user': who.slice(0, 3) })
      await go()
      expect(left).toEqual(expected)
    })

    test('a full queue makes room for a client that has fewer requests in it', async () => {
      const { left, send, go } = await start({ size: 3 })
      for (let i = 0; i < 3; i++) await send(ann)
      await send(bob)
      await until('the newest of the first client has been refused', () => left.length > 0)
      await send(ann)
      await until('a request of a client with as many is refused', () => left.length > 1)
      await go()
      expect(left).toEqual([`${ann}: 503`, `${ann}: 503`, ann, bob, ann])
    })

    test('callers of acquire() take turns', async () => {
      const store = makeStore()
      stores.push(store)
      const limiter = createLimiter({
        name: `fair-${randomUUID()}`,
        store,
        limits: [concurrency({ limit: 1, ttl: '1h' })],
      })
      const taken = await limiter.consume('all')
      const served: string[] = []
      const acquired = [...new Array(20).fill('ann'), 'bob'].map(async (fairBy) => {
        const verdict = await limiter.acquire('all', { fairBy })
        served.push(fairBy)
        await limiter.release(verdict)
      })
      await limiter.release(taken)
      await Promise.all(acquired)
      expect(served).toEqual(['ann', 'bob', ...new Array(19).fill('ann')])
    })
  })
}
