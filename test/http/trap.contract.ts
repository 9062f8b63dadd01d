import { byIp, ipRanges, memoryStore, trap } from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnyOptions, AppFactory, RunningApp } from './support/app.js'
import { run } from './support/app.js'

/** What every adapter does about requests for paths that only probes ask for. */
export function trapContract(name: string, factory: AppFactory): void {
  describe(name, () => {
    const running: RunningApp[] = []
    afterEach(async () => {
      for (const app of running.splice(0)) await app.close()
    })

    const start = async (weight: number, more = {}) => {
      const store = memoryStore()
      const ban = {
        by: 'ip',
        after: 4,
        within: '1h',
        for: ['1h'],
        private: true,
        trap: trap(['/.env', '/.git/*'], { weight }),
      }
      const options = {
        name: 'site',
        store,
        limit: 100,
        window: '1h',
        key: byIp(),
        ban,
        ...more,
      } as unknown as AnyOptions
      const route = { limiters: [options] }
      const app = await run(factory, { routes: { '/': route, '/.env': route, '/.git/config': route } })
      running.push(app)
      return (path: string, headers: Record<string, string> = {}) => request(app.server).get(path).set(headers)
    }

    test.each([
      ['a probe', {}, true],
      ['a person who typed it', { 'sec-fetch-site': 'none' }, true],
      ['an image on another page', { 'sec-fetch-site': 'cross-site' }, false],
      ['an image on the same site', { 'sec-fetch-site': 'same-origin' }, false],
      ['an image on another page, without TLS', { referer: 'http://forum.example/' }, false],
      ['a browser that fetches ahead', { 'sec-fetch-site': 'none', 'sec-purpose': 'prefetch;prerender' }, false],
      ['an older one that does', { purpose: 'prefetch' }, false],
    ])('%s is struck: or not', async (_, headers, isStruck) => {
      const get = await start(4)
      const statuses = [(await get('/.env', headers)).status, (await get('/')).status]
      expect(statuses).toEqual(isStruck ? [429, 429] : [200, 200])
    })

    test('strikes add up, and the request that starts the ban is refused by it', async () => {
      const get = await start(1)
      for (const path of ['/.env', '/.git/config', '/.env?x=1']) expect((await get(path)).status).toBe(200)
      const caught = await get('/.env')
      expect(caught.status).toBe(429)
      expect(caught.body.type).toContain('abnormal-usage-detected')
      expect((await get('/')).status).toBe(429)
    })

    test('clients on an allow list are not struck', async () => {
      const get = await start(4, { allow: ipRanges(['127.0.0.1', '::1']) })
      for (let n = 0; n < 3; n++) expect((await get('/.env')).status).toBe(200)
    })
  })
}
