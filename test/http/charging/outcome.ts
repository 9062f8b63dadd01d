import type { Store, Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { unhandledDuring, warningsDuring } from '../../support/process-events.js'
import type { AnyOptions } from '../support/app.js'
import { hangingGet, isFailure, left, pause, promised, type Running, type Start, slowly, still } from './apps.js'

export function outcomeTests(start: Start): void {
  describe('counting by outcome', () => {
    const login = (store: Store = still()): AnyOptions => ({
      name: 'login',
      store,
      limit: 2,
      window: '15m',
      count: { only: isFailure },
    })

    test('a limit of 2 failures admits 4 concurrent requests that succeed', async () => {
      const app = await start(login(), slowly(200))
      const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await fetch(app.url)).status))
      expect(statuses).toEqual([200, 200, 200, 200])
      expect(await left(app)).toBe(2)
    })

    test('a limit of failures lets no more concurrent requests reach the handler than it has units', async () => {
      const app = await start(login(), slowly(401))
      const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await fetch(app.url)).status))
      expect(statuses.sort()).toEqual([401, 401, ...new Array(10).fill(429)])
      expect(app.ran).toHaveLength(2)
      expect(await left(app)).toBe(0)
    })

    test('among concurrent requests only failures count, in any order', async () => {
      const app = await start(login(), async ({ header }) => {
        await pause(10)
        return { status: Number(header('x-status')), text: '' }
      })
      const expected = [200, 401, 200, 200, 200, 200, 401, 200, 200]
      const statuses = await Promise.all(
        expected.map(async (status) => (await fetch(app.url, { headers: { 'x-status': String(status) } })).status),
      )
      const failed = statuses.filter((status) => status === 401).length
      expect(failed).toBeLessThanOrEqual(2)
      expect(await left(app)).toBe(2 - failed)
      // Every request sent before the limit was used up is admitted.
      if (failed < 2) expect(statuses).toEqual(expected)
    })

    test.each<['success' | 'failure', readonly number[]]>([
      ['success', [200, 206, 304]],
      ['failure', [400, 401, 404, 416]],
    ])('count: "%s" counts the statuses %j', async (count, counted) => {
      const limit = 20
      const app = await start({ ...login(), limit, count: { only: count } }, async ({ header }) => ({
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
      'count: "%s" counts a client that disconnects before any response',
      async (count) => {
        const app = await start({ ...login(), count: { only: count } }, () => new Promise(() => {}))
        const leave = await hangingGet(app.port)
        await expect.poll(() => app.ran.length).toBe(1)
        leave()
        await pause(30)
        expect(await left(app)).toBe(1)
      },
    )

    test('4 concurrent successes pass over two limiters of one name on one store', async () => {
      const store = still()
      const apps = [await start(login(store), slowly(200)), await start(login(store), slowly(200))]
      const statuses = await Promise.all([0, 1, 0, 1].map(async (i) => (await fetch((apps[i] as Running).url)).status))
      expect(statuses).toEqual([200, 200, 200, 200])
    })

    test('4 concurrent successes pass over two stores that share their state', async () => {
      const shared = still()
      const remote = (): Store => ({ ...promised(shared) })
      const apps = [await start(login(remote()), slowly(200)), await start(login(remote()), slowly(200))]
      const statuses = await Promise.all([0, 0, 1, 1].map(async (i) => (await fetch((apps[i] as Running).url)).status))
      expect(statuses).toEqual([200, 200, 200, 200])
    })

    test('an exhausted limit on a shared store is refused after a second, and at once from then on', async () => {
      const app = await start(login(promised(still())), async () => ({ status: 401, text: '' }))
      for (const status of [401, 401]) expect((await fetch(app.url)).status).toBe(status)
      const startedAt = performance.now()
      expect((await fetch(app.url)).status).toBe(429)
      const first = performance.now() - startedAt
      expect(first).toBeGreaterThan(900)
      for (let n = 0; n < 30; n++) expect((await fetch(app.url)).status).toBe(429)
      // Half of the time that they would take if each waited for its second.
      expect(performance.now() - startedAt - first).toBeLessThan(15_000)
    })

    test('a request that waits longer than count.within for other outcomes is refused', async () => {
      let finish = () => {}
      const gate = new Promise<void>((resolve) => {
        finish = resolve
      })
      const app = await start({ ...login(), count: { only: isFailure, within: '60ms' } }, async () => {
        await gate
        return { status: 200, text: '' }
      })
      const first = [fetch(app.url), fetch(app.url)]
      await expect.poll(() => app.ran.length).toBe(2)
      expect((await fetch(app.url)).status).toBe(429)
      finish()
      for (const response of first) expect((await response).status).toBe(200)
    })

    test('a client that disconnects before any response counts, once', async () => {
      const app = await start(login(), () => new Promise(() => {}))
      const leave = await hangingGet(app.port)
      await expect.poll(() => app.ran.length).toBe(1)
      leave()
      await pause(30)
      expect(await left(app)).toBe(1)
      expect(app.errors).toEqual([])
    })

    test('a client that disconnects while it waits never reaches the handler', async () => {
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
    ])('a request whose count %s counts, with a warning', async (_how, count, what) => {
      let warnings: Error[] = []
      const unhandled = await unhandledDuring(async () => {
        warnings = await warningsDuring(async () => {
          const app = await start({ ...login(), count: { only: count as never } })
          expect((await fetch(app.url)).status).toBe(200)
          await pause(20)
          expect(await left(app)).toBe(1)
        })
      })
      expect(unhandled).toEqual([])
      expect(warnings).toMatchObject([{ code: 'SLUICE_COUNT_FAILED', message: `count: ${what}; the request counts` }])
    })

    test('count receives the status and the verdict', async () => {
      const received: unknown[] = []
      const count = (status: number, { remaining }: Verdict) => received.push([status, remaining]) > 1
      const app = await start({ ...login(), count: { only: count } }, async () => ({ status: 404, text: '' }))
      await fetch(app.url)
      await fetch(app.url)
      await expect
        .poll(() => received)
        .toEqual([
          [404, 1],
          [404, 1],
        ])
      await expect.poll(() => left(app)).toBe(1)
    })

    test('a cost settled by the handler is charged, even if the request does not count', async () => {
      const app = await start({ ...login(), limit: 9, cost: 5 }, async ({ verdict }) => {
        await verdict?.settle(3)
        return { status: 200, text: '' }
      })
      await fetch(app.url)
      await pause(20)
      expect(await left(app)).toBe(6)
    })
  })
}
