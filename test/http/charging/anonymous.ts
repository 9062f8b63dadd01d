import { byHeader } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import type { AnyOptions } from '../support/app.js'
import { type Running, type Start, still } from './apps.js'

export function anonymousTests(start: Start): void {
  describe('anonymous', () => {
    const keyed = (anonymous: 'error' | 'by-ip' | 'skip', extra: AnyOptions = {}): AnyOptions => ({
      name: 'users',
      store: still(),
      limit: 1,
      window: '1h',
      key: byHeader('x-user', { secret: false }),
      anonymous,
      ...extra,
    })
    const statuses = async (app: Running, ...users: (string | undefined)[]) => {
      const seen: number[] = []
      for (const user of users) {
        seen.push((await fetch(app.url, user === undefined ? {} : { headers: { 'x-user': user } })).status)
      }
      return seen
    }

    test('a request without a key is refused with 400 by default', async () => {
      const app = await start(keyed('error'))
      expect(await statuses(app, undefined, 'ann', 'ann')).toEqual([400, 200, 429])
    })

    test('anonymous: skip admits requests without a key, without a limit', async () => {
      const app = await start(keyed('skip'))
      expect(await statuses(app, undefined, undefined, '', 'ann', 'ann')).toEqual([200, 200, 200, 200, 429])
    })

    test('anonymous: by-ip counts requests without a key by address, apart from those with a key', async () => {
      const app = await start(keyed('by-ip'))
      expect(await statuses(app, '127.0.0.1', 'ip:127.0.0.1', undefined, '', 'ann')).toEqual([200, 200, 200, 429, 200])
    })

    test('a key that reads like an anonymous client is another identity', async () => {
      const app = await start(keyed('by-ip'))
      expect(await statuses(app, 'anonymous=127.0.0.1', '127.0.0.1', undefined)).toEqual([200, 200, 200])
      expect(app.errors).toEqual([])
    })

    test('a key that is an object gets 400 for any value of anonymous; a promised key is awaited', async () => {
      for (const anonymous of ['by-ip', 'skip'] as const) {
        for (const key of [() => ({}), () => Number.NaN, () => false]) {
          const app = await start(keyed(anonymous, { key: key as never }))
          expect(await statuses(app, undefined)).toEqual([400])
        }
        const app = await start(keyed(anonymous, { key: async () => undefined }))
        expect(await statuses(app, undefined)).toEqual([200])
        const wrong = await start(keyed(anonymous, { key: async () => ({}) as never }))
        expect(await statuses(wrong, undefined)).toEqual([400])
      }
    })
  })
}
