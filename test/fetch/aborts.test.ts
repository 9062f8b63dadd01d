import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { concurrency, createLimiter, leakyBucket, memoryStore, tokenBucket } from '@sluice/core'
import { createTurns, limitedFetch } from '@sluice/fetch'
import { limited } from '@sluice/fetch/undici'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { byEffort } from '../support/effort.js'

const URL_OF_SERVICE = 'http://service.test/'
/** More microtasks than any step of a wait takes. */
const MAX_TICKS = 60
/** So long that a pause of the process does not end a wait, and not longer than some windows: what it might exceed is computed. */
const MAX_WAIT = '1m'

async function ticks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await null
}

/** Sends one request at a time. */
type Send = (signal?: AbortSignal) => Promise<unknown>

const CLIENTS: Record<string, () => Send> = {
  limitedFetch() {
    const api = limitedFetch(async () => new Response(), { maxWait: MAX_WAIT })
    return (signal) => api(URL_OF_SERVICE, { signal: signal ?? null })
  },
  'limitedFetch with limits of two kinds'() {
    const limits = [
      concurrency({ limit: 1, ttl: '1h' }),
      tokenBucket({ capacity: 100, refill: 6_000, every: '1m', unit: 'requests' }),
    ]
    const api = limitedFetch(async () => new Response(), { maxWait: MAX_WAIT, limits })
    return (signal) => api(URL_OF_SERVICE, { signal: signal ?? null })
  },
  createTurns() {
    const turns = createTurns({ maxWait: MAX_WAIT })
    const url = new URL(URL_OF_SERVICE)
    return async (signal) => (await turns.take({ url }, signal)).answered({ status: 200, headers: {} })
  },
  'limited for undici'() {
    type Handler = Record<string, (...args: never[]) => void>
    const dispatch = limited({ maxWait: MAX_WAIT })((_request: object, handler: Handler) => {
      handler.onConnect?.((() => {}) as never)
      handler.onHeaders?.(200 as never, [] as never)
      handler.onComplete?.([] as never)
      return true
    })
    return (signal) =>
      new Promise<void>((resolve, reject) => {
        const handler = {
          onConnect: (abort: () => void) => signal?.addEventListener('abort', () => abort()),
          onHeaders() {},
          onComplete: () => resolve(),
          onError: reject,
        }
        dispatch({ origin: URL_OF_SERVICE, path: '/', method: 'GET' }, handler as never)
      })
  },
  'acquire of units'() {
    const limits = [tokenBucket({ capacity: 1, refill: 60_000, every: '1m' })]
    const limiter = createLimiter({ name: 'aborts', store: memoryStore(), limits })
    return (signal) => limiter.acquire('all', { maxWait: MAX_WAIT, ...(signal && { signal }) })
  },
  'acquire of queued units'() {
    const limits = [leakyBucket({ limit: 60_000, window: '1m', capacity: 100, queue: true })]
    const limiter = createLimiter({ name: 'aborts', store: memoryStore(), limits })
    return (signal) => limiter.acquire('all', { maxWait: MAX_WAIT, ...(signal && { signal }) })
  },
  'acquire of permits'() {
    const limiter = createLimiter({
      name: 'aborts',
      store: memoryStore(),
      limits: [concurrency({ limit: 1, ttl: '1h' })],
    })
    return async (signal) => {
      const verdict = await limiter.acquire('all', { maxWait: MAX_WAIT, ...(signal && { signal }) })
      await limiter.release(verdict)
    }
  },
}

const open = closedAfterEach()

describe.each(Object.entries(CLIENTS))('%s', (_, make) => {
  test.each([1, 3])(
    'an abort in any microtask of a wait keeps no other request from its turn (%i wait)',
    async (waiting) => {
      for (let count = 0; count <= MAX_TICKS; count++) {
        const send = make()
        await send()
        const abort = new AbortController()
        const aborted = Array.from({ length: waiting }, () => () => send(abort.signal))
        const sent = [send, ...aborted, send].map((one) => one())
        await ticks(count)
        abort.abort()
        const results = await Promise.allSettled(sent)
        const ended = [results.at(0), results.at(-1)].map((result) =>
          result?.status === 'rejected' ? String(result.reason) : result?.status,
        )
        expect(ended, `${count} microtasks`).toEqual(['fulfilled', 'fulfilled'])
        await send()
      }
    },
  )

  test('hedged requests keep no later one from its turn', async () => {
    const tick = fc.integer({ min: 0, max: MAX_TICKS })
    const hedges = fc.array(fc.record({ sentAt: tick, abortedAfter: fc.option(tick) }), { minLength: 2, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(hedges, async (all) => {
        const send = make()
        const hedge = async ({ sentAt, abortedAfter }: (typeof all)[number]) => {
          await ticks(sentAt)
          const abort = new AbortController()
          const sent = send(abort.signal)
          if (abortedAfter !== null) void ticks(abortedAfter).then(() => abort.abort())
          await sent
        }
        await Promise.allSettled(all.map(hedge))
        await send()
      }),
      { numRuns: byEffort({ usual: 60, full: 2000 }) },
    )
  })
})

test('requests to a server, each aborted soon after it was made, keep no later one from its turn', async () => {
  const server = createServer((_request, response) => void response.end('ok'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  for (let round = 0; round < MAX_TICKS; round++) {
    const api = limitedFetch(fetch, { maxWait: MAX_WAIT })
    await (await api(url)).text()
    const abortedSoon = async (count: number) => {
      const abort = new AbortController()
      void ticks(count).then(() => abort.abort())
      await (await api(url, { signal: abort.signal })).text()
    }
    await Promise.allSettled([0, 11, 23, 37, 53].map((more) => abortedSoon((round + more) % MAX_TICKS)))
    expect((await api(url)).status).toBe(200)
  }
})
