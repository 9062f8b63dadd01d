import type { HttpContext } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { ask, type Start } from './apps.js'

export function enforceSaltTests(start: Start): void {
  describe('enforce.salt', () => {
    const enforced = async (name: string, salt: string) => {
      const key = (_request: unknown, context: HttpContext) => context.header('x-user')
      const app = await start({ name, limit: 0, window: '10s', enforce: { percent: 50, salt }, key })
      const users = Array.from({ length: 24 }, (_, user) => `user-${user}`)
      const statuses = await Promise.all(users.map(async (user) => (await ask(app, 'GET', { 'X-User': user })).status))
      return users.filter((_, i) => statuses[i] === 429)
    }

    test('enforce.salt selects the same keys across policies, and others with another salt', async () => {
      const [one, again, other] = [
        await enforced('first', 'a secret'),
        await enforced('second', 'a secret'),
        await enforced('first', 'another secret'),
      ]
      expect(one).toEqual(again)
      expect(one).not.toEqual(other)
      for (const users of [one, other]) {
        expect(users?.length).toBeGreaterThan(5)
        expect(users?.length).toBeLessThan(19)
      }
    })
  })
}
