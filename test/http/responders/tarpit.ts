import { once } from 'node:events'
import { tarpit } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { ask, frozen, leave, type Start, sent } from './apps.js'

export function tarpitTests(start: Start): void {
  describe('tarpit', () => {
    const full = { limit: 0, window: '10s' } as const

    test('tarpit holds at most maxConnections, and a client that leaves makes room', async () => {
      const app = await start({ ...full, store: frozen(), respond: tarpit({ for: '1m', maxConnections: 2 }) })
      const caught = [await sent(app), await sent(app)] as const
      expect((await ask(app)).status).toBe(429)
      await leave(app, caught[0])
      const inItsPlace = await sent(app)
      expect((await ask(app)).status).toBe(429)
      expect([caught[1].socket.bytesRead, inItsPlace.socket.bytesRead]).toEqual([0, 0])
      expect(app.errors).toEqual([])
    })

    test('tarpit holds a connection for the set time, then refuses it', async () => {
      const app = await start({ ...full, store: frozen(), respond: tarpit({ for: 500 }) })
      const request = await sent(app)
      expect((await request.response).status).toBe(429)
      expect(await request.took).toBeGreaterThan(490)
    })

    test('tarpit delays the close of a server no longer than it holds', async () => {
      const app = await start({ store: frozen(), limit: 0, window: '10s', respond: tarpit({ for: 200 }) })
      const held = await sent(app)
      app.server.close()
      await once(app.server, 'close')
      expect((await held.response).status).toBe(429)
    })
  })
}
