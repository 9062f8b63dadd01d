import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import type { Store } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import type { AnyOptions } from '../support/app.js'
import type { Answering } from '../support/body-apps.js'
import { chunkedPost, left, pause, promised, type Start, still, textOf } from './apps.js'

export function maxBodyByteTests(start: Start, name: string): void {
  describe('body.max', () => {
    const limited = (extra: AnyOptions = {}): AnyOptions => ({
      store: still(),
      limit: 5,
      window: '1h',
      body: { max: 100 },
      ...extra,
    })
    const echo: Answering = async ({ body }) => ({ status: 200, text: await body() })
    const PROBLEM = {
      type: 'about:blank',
      title: 'Content Too Large',
      status: 413,
      detail: 'The body of a request may have up to 100 bytes.',
    }

    test('body.max refuses a body that announces too much before it arrives, and charges nothing', async () => {
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

    test('body.max admits a body of exactly the maximum, announced or not', async () => {
      const app = await start(limited(), echo)
      const body = 'x'.repeat(100)
      expect(await (await fetch(app.url, { method: 'POST', body })).text()).toBe(body)
      const { response, request } = chunkedPost(app)
      request.write(body.slice(0, 60))
      request.end(body.slice(60))
      expect(await textOf(await response)).toBe(body)
    })

    test('body.max cuts off a body that grows too large, once, and the handler sees it aborted', async () => {
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
      // Whether or not the handler had begun, it never saw a whole body. Fastify calls no error handler if no client is
      // left to receive the response.
      await expect.poll(() => app.errors.length).toBe(name === 'Fastify' ? 0 : 1)
      await pause(20)
      expect(whole).toBe(0)
      expect((await fetch(app.url, { method: 'POST', body: 'fine' })).status).toBe(200)
      expect(whole).toBe(1)
    })

    test('a body too large from its first chunk is cut off, also if it is not read', async () => {
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

    test('a request that gets 413 while its handler runs counts', async () => {
      let answer = () => {}
      const handler = () =>
        new Promise<Awaited<ReturnType<Answering>>>((resolve) => {
          answer = () => resolve({ status: 200, text: 'late' })
        })
      const app = await start(limited({ count: { only: 'success' } }), handler)
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

    test('a skipped request may have a body of any length', async () => {
      const app = await start(limited({ skip: () => true }), echo)
      expect((await fetch(app.url, { method: 'POST', body: 'x'.repeat(500) })).status).toBe(200)
    })

    test('a late skip loses nothing of the body that arrived meanwhile', async () => {
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

    test('a body that grows too large during the decision is refunded and reaches no handler', async () => {
      let isDecided = false
      const store = still()
      const slow: Store = {
        ...promised(store),
        decide: async (request) => {
          await pause(60)
          const result = await store.decide(request)
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
      await until('the request is decided', () => isDecided)
      await until('the charge is refunded', async () => (await left(app)) === 5)
      expect([app.ran, app.errors]).toEqual([[], []])
    })
  })
}
