import { byHeader, everyone, fixedWindow, gcra, type IdentityByKind, type Limiter } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import type { AnyOptions } from '../support/app.js'
import { type Running, type Start, still } from './apps.js'

export function tierTests(start: Start): void {
  describe('tiers', () => {
    const tiered = (extra: AnyOptions = {}): AnyOptions => {
      const all = gcra({ name: 'all', limit: 10, window: '1h', key: everyone(), reserve: { 10: 0.3 } })
      const own = (limit: number) => fixedWindow({ name: 'own', limit, window: '1h' })
      return {
        name: 'api',
        store: still(),
        key: byHeader('x-user', { secret: false }),
        tiers: { free: [own(2), all], pro: [own(9), all], gratis: [own(2), all] },
        tier: (_request: unknown, context: { header(name: string): string | undefined }) =>
          context.header('x-tier') as string,
        priority: { pro: 10 },
        ...extra,
      }
    }
    const ask = async (app: Running, user: string, tier: string) =>
      fetch(app.url, { headers: { 'x-user': user, 'x-tier': tier } })

    test('each tier has its own limits, and a limit in several tiers is shared', async () => {
      const app = await start(tiered())
      const seen: unknown[] = []
      for (const [user, tier] of [
        ['ann', 'free'],
        ['ann', 'free'],
        ['ann', 'free'],
        ['ann', 'gratis'],
        ['bob', 'pro'],
      ] as const) {
        const response = await ask(app, user, tier)
        seen.push([response.status, response.headers.get('ratelimit')?.replace(/;t=\d+/g, '')])
      }
      expect(seen).toEqual([
        [200, '"own";r=1, "all";r=6'],
        [200, '"own";r=0, "all";r=5'],
        [429, '"own";r=0, "all";r=5'],
        [200, '"own";r=1, "all";r=4'],
        [200, '"own";r=8, "all";r=6'],
      ])
    })

    test('a reserve is left to requests of the higher priority', async () => {
      const app = await start(tiered())
      for (let n = 0; n < 7; n++) expect((await ask(app, `user-${n}`, 'free')).status).toBe(200)
      const refused = await ask(app, 'late', 'free')
      expect(refused.status).toBe(429)
      // One unit returns in 360 s, and the three reserved ones are full.
      expect(refused.headers.get('retry-after')).toBe('360')
      for (const status of [200, 200, 200, 429]) expect((await ask(app, 'payer', 'pro')).status).toBe(status)
    })

    test('an identity by kind is peeked at in the named tier, and reset in all tiers', async () => {
      const app = await start(tiered())
      const limiter = app.limiter as unknown as Limiter<IdentityByKind>
      const ann = { 'header:x-user': 'ann' }
      for (const tier of ['free', 'pro']) await ask(app, 'ann', tier)
      const lefts = async (tier: string) => (await limiter.peek(ann, { tier })).limits[0]?.remaining
      expect([await lefts('free'), await lefts('gratis'), await lefts('pro')]).toEqual([1, 2, 8])
      await expect(limiter.peek(ann)).rejects.toMatchObject({ code: 'INVALID_POLICY' })
      await limiter.reset(ann)
      expect([await lefts('free'), await lefts('gratis'), await lefts('pro')]).toEqual([2, 2, 9])
    })

    test('an unknown tier is an error that names the known tiers', async () => {
      const app = await start(tiered())
      for (const tier of ['gold', 'constructor', '__proto__']) {
        expect((await ask(app, 'ann', tier)).status).toBe(500)
      }
      expect(app.errors[0]).toMatchObject({
        code: 'INVALID_POLICY',
        message: 'policy "api": tier: expected "free" or "pro" or "gratis", got "gold"',
      })
    })
  })
}
