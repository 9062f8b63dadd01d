import { delay, gcra, memoryStore, perDay, reject, slidingLog } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { ask, frozen, type Start } from './apps.js'

export function limitTests(start: Start): void {
  describe('responders of limits', () => {
    const both = () =>
      start({
        store: frozen(),
        limits: [
          gcra({ name: 'fast', limit: 2, window: '10s', respond: reject({ status: 503 }) }),
          perDay(3, { name: 'day', respond: reject({ body: 'tomorrow' }) }),
          slidingLog({ name: 'hour', limit: 4, window: '1h' }),
        ],
        respond: reject({ body: 'own' }),
      })

    test('the limit that refuses chooses', async () => {
      const app = await both()
      for (let n = 0; n < 2; n++) expect((await ask(app)).status).toBe(200)
      expect((await ask(app)).status).toBe(503)
    })

    test('of several that refuse, the one that refuses for longest chooses; a block is the limiter’s own', async () => {
      const time = { now: 0 }
      const app = await start({
        store: memoryStore({ clock: () => time.now }),
        limits: [
          perDay(2, { name: 'day', respond: reject({ body: 'tomorrow' }) }),
          gcra({ name: 'fast', limit: 1, window: 1000, respond: reject({ status: 503 }) }),
          slidingLog({ name: 'hour', limit: 2, window: '1h' }),
        ],
        respond: reject({ body: 'own' }),
      })
      expect((await ask(app)).status).toBe(200)
      expect((await ask(app)).status).toBe(503)
      time.now += 1000
      expect((await ask(app)).status).toBe(200)
      expect((await ask(app)).body).toBe('tomorrow')
      await app.limiter.block('everyone', { for: '1h' })
      expect((await ask(app)).body).toBe('own')
    })

    test('a limit that delays leaves what another refuses for longer to that one', async () => {
      const app = await start({
        limits: [gcra({ limit: 1, window: 80, respond: delay() }), perDay(2)],
      })
      const seen: number[] = []
      for (let n = 0; n < 3; n++) seen.push((await ask(app)).status)
      expect(seen).toEqual([200, 200, 429])
    })
  })
}
