import { degrade, throttle } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { ask, frozen, type Start } from './apps.js'

export function degradeTests(start: Start): void {
  describe('degrade', () => {
    test('degrade calls the handler uncharged, and the verdict says so', async () => {
      const app = await start({ store: frozen(), limit: 1, window: '10s', respond: degrade() }, (verdict) => ({
        body: { degraded: verdict?.degraded },
      }))
      expect((await ask(app)).body).toBe('{"degraded":false}')
      const { status, head, body } = await ask(app)
      expect(app.errors).toEqual([])
      expect([status, body]).toEqual([200, '{"degraded":true}'])
      expect(head).toMatch(/ratelimit: "default";r=0/i)
      expect(head).not.toMatch(/retry-after/i)
      expect(head).toMatch(/cache-control: no-store/i)
      expect(app.ran[1]).toMatchObject({ allowed: false, reason: 'limited', degraded: true, cost: 0 })
    })

    test('a degraded handler may replace Cache-Control, and others are as the handler sends them', async () => {
      const headers = { 'Cache-Control': 'private, max-age=5' }
      const app = await start({ store: frozen(), limit: 1, window: '10s', respond: degrade() }, () => ({ headers }))
      for (let n = 0; n < 2; n++) expect((await ask(app)).head).toMatch(/cache-control: private, max-age=5/i)
      const throttled = await start({
        store: frozen(),
        limit: 1,
        window: '10s',
        respond: throttle({ bytesPerSecond: 1_000_000 }),
      })
      for (let n = 0; n < 2; n++) expect((await ask(throttled)).head).not.toMatch(/cache-control/i)
    })

    test('degrade and throttle do not admit blocked clients', async () => {
      for (const respond of [degrade(), throttle({ bytesPerSecond: 10 })]) {
        const app = await start({ store: frozen(), limit: 1, window: '10s', respond })
        await app.limiter.block('everyone', { for: '1h' })
        expect((await ask(app)).status).toBe(429)
        expect(app.ran).toEqual([])
      }
    })
  })
}
