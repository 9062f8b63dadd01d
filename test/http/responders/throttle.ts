import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { reject, throttle } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { rawRequest } from '../support/raw.js'
import { ask, frozen, HANGS_MS, leave, pieces, type Start } from './apps.js'

export function throttleTests(start: Start): void {
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
    ])('throttle slows %s down after the first bytes, and changes none', async (_what, body) => {
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

    test('a throttled body without a length gets its usual length', async () => {
      const app = await start({ ...slowed, respond: throttle({ bytesPerSecond: 10_000 }) }, () => ({
        body: 'x'.repeat(1500),
      }))
      const { head, body } = await ask(app)
      expect(head).toMatch(/content-length: 1500/i)
      expect(body).toBe('x'.repeat(1500))
    })

    test('a throttled stream waits for its client, so that little is buffered', async () => {
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

    test('throttle bounds slow responses, refuses others, and frees a place when one ends or its client leaves', async () => {
      const respond = throttle({ bytesPerSecond: 2000, maxConnections: 2, otherwise: reject({ status: 503 }) })
      // With a limit that is always in reach, so that the responder chooses 503.
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

    test('throttle leaves HEAD, and responses without a body, unchanged', async () => {
      const app = await start({ ...slowed, respond: throttle({ bytesPerSecond: 1 }) }, () => ({ status: 204 }))
      expect((await ask(app)).status).toBe(204)
      const long = await start({ ...slowed, respond: throttle({ bytesPerSecond: 1 }) }, () => ({
        body: 'long enough',
      }))
      const head = await ask(long, 'HEAD')
      expect([head.status, head.body]).toEqual([200, ''])
    })
  })
}
