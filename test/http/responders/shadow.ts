import { shadow } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import type { Handler } from '../support/handler-apps.js'
import { ask, fieldsOf, frozen, html, type Start } from './apps.js'

export function shadowTests(start: Start): void {
  describe('shadow', () => {
    const limit = { store: frozen(), limit: 1, window: '10s' } as const

    test.each<[string, Parameters<typeof shadow>[0], Handler]>([
      ['JSON', { body: { ok: true } }, () => ({ body: { ok: true } })],
      ['text', { body: 'welcome', contentType: 'text/html; charset=utf-8' }, () => html('welcome')],
      ['another status', { status: 201, body: { id: 7 } }, () => ({ status: 201, body: { id: 7 } })],
      [
        'more headers',
        { headers: { 'Cache-Control': 'max-age=9' }, body: { a: 1 } },
        () => ({ headers: { 'Cache-Control': 'max-age=9' }, body: { a: 1 } }),
      ],
    ])('a shadow equals the real response to the byte: %s', async (_what, options, answer) => {
      const app = await start({ ...limit, store: frozen(), respond: shadow(options) }, answer)
      const real = await ask(app)
      const shadowed = await ask(app)
      expect({ ...shadowed, head: fieldsOf(shadowed.head) }).toEqual({ ...real, head: fieldsOf(real.head) })
      expect(shadowed.head).not.toMatch(/ratelimit|retry|no-store/i)
      expect(app.ran).toHaveLength(1)
    })

    test('a shadow of HEAD has the same head and no body', async () => {
      const respond = shadow({ body: { a: 1 } })
      const app = await start({ ...limit, store: frozen(), respond }, () => ({ body: { a: 1 } }))
      const real = await ask(app)
      const shadowed = await ask(app, 'HEAD')
      expect(shadowed.body).toBe('')
      expect(fieldsOf(shadowed.head)).toEqual(fieldsOf(real.head))
    })

    test('with shadow, admitted responses have no quota headers', async () => {
      const app = await start({ ...limit, store: frozen(), headers: 'draft-7', respond: shadow() })
      expect((await ask(app)).head).not.toMatch(/ratelimit/i)
    })

    test('a shadow responds to blocked clients, too, by functions of the request', async () => {
      const app = await start({
        ...limit,
        store: frozen(),
        respond: shadow({ body: async () => ({ at: 'x' }), headers: async () => ({ 'X-Id': '5' }) }),
      })
      await app.limiter.block('everyone', { for: '1h' })
      const { status, head, body } = await ask(app)
      expect([status, body]).toEqual([200, '{"at":"x"}'])
      expect(head).toMatch(/x-id: 5/i)
      expect(app.ran).toEqual([])
    })
  })
}
