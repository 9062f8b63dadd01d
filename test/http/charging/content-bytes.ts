import { request as send } from 'node:http'
import { fixedWindow, gcra } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import type { AnyOptions } from '../support/app.js'
import type { Answering, BodyApp } from '../support/body-apps.js'
import { chunkedPost, left, pause, type Start, still, textOf } from './apps.js'

export function contentByteTests(start: Start): void {
  describe('content bytes', () => {
    const upload = (extra: AnyOptions = {}): AnyOptions => ({
      name: 'upload',
      store: still(),
      limits: [
        gcra({ name: 'bytes', limit: 1000, window: '1h', unit: 'content-bytes' }),
        fixedWindow({ name: 'requests', limit: 10, window: '1h' }),
      ],
      body: { max: 400 },
      ...extra,
    })
    const lefts = async (app: BodyApp) => (await app.limiter.peek('everyone')).limits.map(({ remaining }) => remaining)
    const echo: Answering = async ({ body }) => ({ status: 200, text: String((await body()).length) })

    test('an announced length is charged, and reported as a quota of bytes beside one of requests', async () => {
      const app = await start(upload(), echo)
      const response = await fetch(app.url, { method: 'POST', body: 'x'.repeat(300) })
      expect([response.status, await response.text()]).toEqual([200, '300'])
      expect(response.headers.get('ratelimit-policy')).toBe(
        '"bytes";q=1000;qu="content-bytes";w=3600, "requests";q=10;w=3600',
      )
      expect(response.headers.get('ratelimit')).toMatch(/^"bytes";r=700;t=\d+, "requests";r=9;t=\d+$/)
      expect(await lefts(app)).toEqual([700, 9])
    })

    test('with requireLength, a body without an announced length gets 411 and reserves nothing', async () => {
      const app = await start({ ...upload(), body: { max: 400, requireLength: true } }, echo)
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

    test('a request without a body is charged no bytes', async () => {
      const app = await start(upload())
      expect((await fetch(app.url)).status).toBe(200)
      expect(await lefts(app)).toEqual([1000, 9])
    })

    test('a body without an announced length reserves body.max, and is settled for its length', async () => {
      const app = await start(upload(), echo)
      const { response, request } = chunkedPost(app)
      request.write('x'.repeat(50))
      await expect.poll(() => lefts(app)).toEqual([600, 9])
      request.end('x'.repeat(70))
      const answer = await response
      expect([answer.statusCode, await textOf(answer)]).toEqual([200, '120'])
      await expect.poll(() => lefts(app)).toEqual([880, 9])
    })

    test('a body that is cut off is settled for the received bytes', async () => {
      const app = await start(upload(), echo)
      const { response, request } = chunkedPost(app)
      request.write('x'.repeat(50))
      await expect.poll(() => lefts(app)).toEqual([600, 9])
      request.destroy()
      await response.catch(() => {})
      await expect.poll(() => lefts(app)).toEqual([950, 9])
    })

    test('an announced body of which only a part arrives is settled for that part', async () => {
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

    test('a request with too many bytes is refused before its body arrives', async () => {
      const app = await start(upload(), echo)
      for (const status of [200, 200, 429]) {
        expect((await fetch(app.url, { method: 'POST', body: 'x'.repeat(400) })).status).toBe(status)
      }
      expect(await lefts(app)).toEqual([200, 8])
    })

    test('a request that does not count is refunded cost and bytes', async () => {
      const app = await start(upload({ count: { only: (status) => status >= 400 } }), echo)
      expect((await fetch(app.url, { method: 'POST', body: 'x'.repeat(300) })).status).toBe(200)
      await expect.poll(() => lefts(app)).toEqual([1000, 10])
    })

    test('a handler can settle the actual cost of a request', async () => {
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
}
