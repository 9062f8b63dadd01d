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

    test('the responder of the limit that refuses responds', async () => {
      const app = await both()
      for (let n = 0; n < 2; n++) expect((await ask(app)).status).toBe(200)
      expect((await ask(app)).status).toBe(503)
    })

    test('among several refusing limits the longest wait chooses the responder; a block uses the limiter’s', async () => {
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

    test('a limit with delay leaves a longer refusal to the limit that causes it', async () => {
      const app = await start({
        limits: [gcra({ limit: 1, window: 80, respond: delay() }), perDay(2)],
      })
      const seen: number[] = []
      for (let n = 0; n < 3; n++) seen.push((await ask(app)).status)
      expect(seen).toEqual([200, 200, 429])
    })
  })
}
