import assert from 'node:assert/strict'
import { everyone, memoryStore, reject, type Store } from '@sluice/core'
import type { RegisterTest } from './adapter-test.js'
import type { AdapterLimiterOptions } from './app.js'
import { send, statuses } from './client.js'

const failing = () => {
  throw new Error('function of the application')
}
const rejecting = async () => failing()

/** Functions that fail, and the code of the error; without one it is the function's own error. */
const BAD_OPTIONS: readonly (readonly [what: string, bad: Partial<AdapterLimiterOptions>, code?: string])[] = [
  ['an undefined cost', { cost: () => undefined as never }, 'INVALID_COST'],
  ['a late undefined cost', { cost: async () => undefined as never }, 'INVALID_COST'],
  ['a limit function that returns NaN', { limit: () => Number.NaN }, 'INVALID_POLICY'],
  ['a cost that throws', { cost: failing }],
  ['a cost that rejects', { cost: rejecting }],
  ['a key that throws', { key: failing }],
  ['a skip that throws', { skip: failing }],
  ['a skip that rejects', { skip: rejecting }],
]

const BAD_RESPONDERS: readonly (readonly [what: string, bad: () => never])[] = [
  ['throws', failing],
  ['rejects', rejecting as never],
  ['returns nothing', (() => undefined) as never],
]

export function faultTests(on: RegisterTest): void {
  for (const [what, bad, code] of BAD_OPTIONS) {
    on(`${what} reaches the error handler once and charges nothing`, async ({ start, store }) => {
      const good = { name: 'api', store, limit: 1, window: '10s' as const, key: everyone() }
      const app = await start({
        routes: { '/bad': { limiters: [{ ...good, ...bad }] }, '/good': { limiters: [good] } },
      })
      const { status, text } = await send(`${app.url}/bad`)
      assert.deepEqual([status, text], [500, `error ${code}`])
      assert.equal(app.errors.length, 1)
      if (code) assert.match((app.errors[0] as Error).message, /^policy "api": /)
      assert.deepEqual(app.ran, [])
      assert.deepEqual(await statuses(`${app.url}/good`, 1), [200])
    })
  }

  for (const [what, bad] of BAD_RESPONDERS) {
    on(`a responder or body that ${what} reaches the error handler once`, async ({ start, store }) => {
      const app = await start({
        routes: {
          '/responder': { limiters: [{ name: 'a', store, limit: 0, window: '10s', respond: bad }] },
          '/body': { limiters: [{ name: 'b', store, limit: 0, window: '10s', respond: reject({ body: bad }) }] },
        },
      })
      assert.deepEqual(await statuses(`${app.url}/responder`, 1), [500])
      assert.deepEqual(await statuses(`${app.url}/body`, 1), [500])
      assert.equal(app.errors.length, 2)
      assert.deepEqual(app.ran, [])
    })
  }

  on('a store that fails reaches the error handler', async ({ start }) => {
    const store: Store = { ...memoryStore(), decide: async () => Promise.reject(new Error('store')) }
    const app = await start({ routes: { '/': { limiters: [{ store, limit: 1, window: '10s' }] } } })
    assert.deepEqual(await statuses(app.url, 1), [500])
    assert.equal(app.errors.length, 1)
  })

  on('a slow result of a store is awaited', async ({ start, store }) => {
    const late: Store = {
      ...store,
      decide: async (request) => {
        await null
        return store.decide(request)
      },
    }
    const app = await start({ routes: { '/': { limiters: [{ name: 'api', store: late, limit: 1, window: '10s' }] } } })
    assert.deepEqual(await statuses(app.url, 2), [200, 429])
    assert.deepEqual(
      app.verdicts.map((verdict) => (verdict as { allowed: boolean }).allowed),
      [true],
    )
  })
}
