import { reject } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { ask, frozen, type Start } from './apps.js'

export function functionTests(start: Start): void {
  describe('a function as responder', () => {
    test('a function can respond itself, asynchronously, or call a responder', async () => {
      const app = await start({
        store: frozen(),
        limit: 1,
        window: '10s',
        respond: async (refused: Parameters<ReturnType<typeof reject>>[0]) =>
          refused.context.method === 'POST'
            ? reject({ status: 503 })(refused)
            : { status: 418, headers: [['X-Tea', 'yes']], body: 'pot', showsQuota: false },
      })
      await ask(app)
      const { status, head, body } = await ask(app)
      expect([status, body]).toEqual([418, 'pot'])
      expect(head).toMatch(/x-tea: yes/i)
      expect((await ask(app, 'POST')).status).toBe(503)
    })
  })
}
