import { byIp, ipRanges, memoryStore, trap } from '@sluice/core'
import request from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnyOptions, AppFactory, RunningApp } from './support/app.js'
import { run } from './support/app.js'

/** Requests for paths that only probes request, in every adapter. */
export function trapContract(name: string, factory: AppFactory): void {
  describe(name, () => {
    const running: RunningApp[] = []
    afterEach(async () => {
      for (const app of running.splice(0)) await app.close()
    })

    const start = async (weight: number, more = {}, browsers = false) => {
      const store = memoryStore()
      const ban = {
        by: 'ip',
        after: 4,
        within: '1h',
        for: ['1h'],
        private: true,
        trap: trap(['/.env', '/.git/*'], { weight, browsers }),
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
      ['a person who typed it, or follows a link in a mail', { 'sec-fetch-site': 'none' }, false],
      ['a browser of the future', { 'sec-fetch-site': 'app' }, false],
      ['an image on another page', { 'sec-fetch-site': 'cross-site' }, false],
      ['an image on the same site', { 'sec-fetch-site': 'same-origin' }, false],
      ['an image on another page, without TLS', { referer: 'http://forum.example/' }, false],
      ['a prefetching browser', { 'sec-fetch-site': 'none', 'sec-purpose': 'prefetch;prerender' }, false],
      ['an older prefetching browser', { purpose: 'prefetch' }, false],
    ])('%s strikes unless a browser may have made the request', async (_, headers, isStruck) => {
      const get = await start(4)
      const statuses = [(await get('/.env', headers)).status, (await get('/')).status]
      expect(statuses).toEqual(isStruck ? [429, 429] : [200, 200])
    })

    // The headers of browsers for an image with referrerpolicy="no-referrer", without TLS.
    const BROWSERS = {
      Chromium: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
      Firefox: 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
      Safari:
        'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
    }

    test.each(Object.entries(BROWSERS))(
      'an image requested by %s without TLS strikes only with browsers: true',
      async (_, agent) => {
        const image = {
          'user-agent': agent,
          accept: 'image/avif,image/webp,*/*;q=0.8',
          'accept-language': 'en-GB,en;q=0.9',
        }
        for (const browsers of [false, true]) {
          const get = await start(4, {}, browsers)
          const statuses = [(await get('/.env', image)).status, (await get('/')).status]
          expect(statuses).toEqual(browsers ? [429, 429] : [200, 200])
        }
      },
    )

    test.each([
      ['curl', { 'user-agent': 'curl/8.14.1', accept: '*/*' }],
      ['a program in Python', { 'user-agent': 'python-requests/2.32.5', 'accept-language': 'en' }],
      ['a scanner under the name of a browser', { 'user-agent': BROWSERS.Chromium, accept: '*/*' }],
    ])('a request of %s for a trap is a strike', async (_, headers) => {
      const get = await start(4)
      expect((await get('/.env', headers)).status).toBe(429)
    })

    test.each([
      ['none', true],
      ['cross-site', false],
      ['same-origin', false],
      ['', false],
    ])(
      'with browsers: true, Sec-Fetch-Site: %s for a trap strikes only if no page made the request',
      async (site, isStruck) => {
        const get = await start(4, {}, true)
        expect((await get('/.env', { 'sec-fetch-site': site })).status).toBe(isStruck ? 429 : 200)
      },
    )

    test('strikes of a trap add up, and the request that starts the ban is refused by it', async () => {
      const get = await start(1)
      for (const path of ['/.env', '/.git/config', '/.env?x=1']) expect((await get(path)).status).toBe(200)
      const caught = await get('/.env')
      expect(caught.status).toBe(429)
      expect(caught.body.type).toContain('abnormal-usage-detected')
      expect((await get('/')).status).toBe(429)
    })

    test('clients on an allow list are not struck by a trap', async () => {
      const get = await start(4, { allow: ipRanges(['127.0.0.1', '::1']) })
      for (let n = 0; n < 3; n++) expect((await get('/.env')).status).toBe(200)
    })
  })
}
