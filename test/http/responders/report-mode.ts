import { delay, type HttpContext, leakyBucket, tarpit, type Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { ask, frozen, type Start } from './apps.js'

export function reportModeTests(start: Start): void {
  describe('report mode', () => {
    test('report mode decides and charges, and admits everything without headers', async () => {
      const refused: boolean[] = []
      const app = await start({
        store: frozen(),
        limit: 2,
        window: '10s',
        enforce: { mode: 'report' },
        onVerdict: (_request: unknown, { allowed }: Verdict) => void refused.push(!allowed),
      })
      for (let n = 0; n < 4; n++) {
        const { status, head } = await ask(app)
        expect(status).toBe(200)
        expect(head).not.toMatch(/ratelimit|retry-after/i)
      }
      expect(refused).toEqual([false, false, true, true])
      expect(app.ran).toMatchObject([
        { allowed: true, reported: true },
        { allowed: true, reported: true },
        { allowed: false, reported: true, reason: 'limited' },
        { allowed: false, reported: true },
      ])
      expect((await app.limiter.peek('everyone')).remaining).toBe(0)
    })

    test('report mode neither delays nor blocks, and reports the quota with enforce.headers', async () => {
      for (const options of [
        { limits: [leakyBucket({ leak: 1, every: '1h', capacity: 2, queue: true })] },
        { limit: 1, window: '1h' as const, respond: delay({ from: 0, by: '10m' }) },
        { limit: 1, window: '1h' as const, respond: tarpit({ for: '1m' }) },
      ]) {
        const app = await start({ store: frozen(), enforce: { mode: 'report', headers: true }, ...options })
        for (let n = 0; n < 3; n++) {
          const { status, head } = await ask(app)
          expect(status).toBe(200)
          expect(head).toMatch(/ratelimit: /i)
          expect(head).not.toMatch(/retry-after/i)
        }
        await app.limiter.block('everyone', { for: '1h' })
        expect((await ask(app)).status).toBe(200)
        expect(app.ran).toHaveLength(4)
      }
    })

    test('enforce.percent enforces a steady share of the keys, which only grows', async () => {
      const enforced = async (percent: number, count = 60) => {
        const app = await start({
          name: 'roll-out',
          limit: 0,
          window: '10s',
          enforce: { percent },
          key: (_request: unknown, context: HttpContext) => context.header('x-user'),
        })
        const users = Array.from({ length: count }, (_, user) => user)
        const statuses = await Promise.all(
          users.map(async (user) => (await ask(app, 'GET', { 'X-User': `user-${user}` })).status),
        )
        return users.filter((user) => statuses[user] === 429)
      }
      const [none, some, again, more, all] = [
        await enforced(0, 10),
        await enforced(30),
        await enforced(30),
        await enforced(60),
        await enforced(100, 10),
      ]
      expect(none).toEqual([])
      expect(some).toEqual(again)
      expect(some?.length).toBeGreaterThan(8)
      expect(some?.length).toBeLessThan(30)
      expect(more).toEqual(expect.arrayContaining(some as number[]))
      expect(all).toHaveLength(10)
    })
  })
}
