import { shadow } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import type { Handler } from '../support/handler-apps.js'
import { ask, frozen, html, type Start } from './apps.js'

export function shadowTests(start: Start): void {
  describe('shadow', () => {
    const limit = { store: frozen(), limit: 1, window: '10s' } as const

    const NOT_SHARED = { 'Cache-Control': 'private, max-age=9' }
    test.each<[string, Parameters<typeof shadow>[0], Handler]>([
      ['JSON', { body: { ok: true } }, () => ({ body: { ok: true } })],
      ['text', { body: 'welcome', contentType: 'text/html; charset=utf-8' }, () => html('welcome')],
      ['another status', { status: 201, body: { id: 7 } }, () => ({ status: 201, body: { id: 7 } })],
      [
        'more headers, in their order',
        { headers: { 'X-B': 'b', 'X-A': 'a' }, body: { a: 1 } },
        () => ({ headers: { 'X-B': 'b', 'X-A': 'a' }, body: { a: 1 } }),
      ],
      [
        'a type among the headers',
        { headers: { 'content-type': 'text/csv', 'X-A': 'a' }, contentType: 'text/html', body: 'a,b' },
        () => ({ headers: { 'content-type': 'text/csv', 'X-A': 'a' }, body: 'a,b' }),
      ],
    ])('a shadow equals a response that no shared cache stores, to the byte: %s', async (_what, options, answer) => {
      const sent = { ...options, headers: { ...NOT_SHARED, ...options?.headers } }
      const app = await start({ ...limit, store: frozen(), respond: shadow(sent) }, async (verdict) => {
        const { headers, ...rest } = await answer(verdict)
        return { ...rest, headers: { ...NOT_SHARED, ...headers } }
      })
      const real = await ask(app)
      const shadowed = await ask(app)
      expect(shadowed).toEqual(real)
      expect(shadowed.head).not.toMatch(/ratelimit|retry|no-store/i)
      expect(app.ran).toHaveLength(1)
    })

    test.each([
      [undefined, 'no-store'],
      ['no-store', 'no-store'],
      ['private, max-age=9', 'private, max-age=9'],
      ['No-Store, no-cache="set-cookie"', 'No-Store, no-cache="set-cookie"'],
      ['max-age=9', 'no-store'],
      ['private="set-cookie"', 'no-store'],
      ['no-store, must-understand', 'no-store'],
    ])('a shadow with Cache-Control %s sends %s', async (given, expected) => {
      const respond = shadow({ headers: given === undefined ? {} : { 'Cache-Control': given } })
      const app = await start({ ...limit, store: frozen(), respond })
      await ask(app)
      expect(/cache-control: (.*)/i.exec((await ask(app)).head)?.[1]).toBe(expected)
    })

    test('a shadow of HEAD has the same head and no body', async () => {
      const sent = { headers: { 'Cache-Control': 'no-store' }, body: { a: 1 } }
      const app = await start({ ...limit, store: frozen(), respond: shadow(sent) }, () => sent)
      const real = await ask(app)
      const shadowed = await ask(app, 'HEAD')
      expect(shadowed.body).toBe('')
      expect(shadowed.head).toBe(real.head)
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
