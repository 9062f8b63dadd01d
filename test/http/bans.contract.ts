import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import {
  byHeader,
  byIp,
  degrade,
  escalate,
  memoryStore,
  queue,
  reject,
  shadow,
  slidingLog,
  throttle,
} from '@sluice/core'
import { afterAll, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'
import type { AnyOptions } from './support/app.js'
import type { Handler, HandlerApp, HandlerAppFactory } from './support/handler-apps.js'

const BAN = { after: 3, within: '1m', for: ['10m', '1h'], forgetAfter: '1d' } as const
const ABNORMAL = 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected'

/** Bans of clients that are refused repeatedly. */
export function bansContract(name: string, factory: HandlerAppFactory): void {
  describe(`bans: ${name}`, () => {
    const running: HandlerApp[] = []
    const start = async (options: AnyOptions, answer: Handler = () => ({ body: 'done' })) => {
      let now = 1_800_000_000_000
      const store = memoryStore({ clock: () => now })
      const app = await factory({ store, key: byHeader('x-key'), limit: 1, window: '10s', ...options }, answer)
      running.push(app)
      app.server.listen(0, '127.0.0.1')
      await once(app.server, 'listening')
      const { port } = app.server.address() as AddressInfo
      return {
        ...app,
        pass: (ms: number) => {
          now += ms
        },
        ask: (key = 'a', accept = 'application/json') =>
          fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-key': key, accept } }),
        async statuses(times: number, key?: string) {
          const statuses: number[] = []
          for (let n = 0; n < times; n++) statuses.push((await this.ask(key)).status)
          return statuses
        },
      }
    }
    afterAll(() => {
      for (const { server } of running) {
        server.close()
        server.closeAllConnections()
      }
    })

    test('the strike that reaches `after` is refused as a ban, like every request until the ban ends', async () => {
      const app = await start({ ban: BAN })
      expect(await app.statuses(3)).toEqual([200, 429, 429])
      const banned = await app.ask()
      expect(banned.status).toBe(429)
      expect(await banned.json()).toMatchObject({ type: ABNORMAL, status: 429 })
      expect(banned.headers.get('retry-after')).toBe('600')
      expect(banned.headers.get('ratelimit')).toBeNull()
      expect(await (await app.ask('a', 'text/plain')).text()).toBe('Banned: try again in 600 s.\n')
      // Other clients are not banned.
      expect((await app.ask('b')).status).toBe(200)
      app.pass(599_999)
      expect((await app.ask()).headers.get('retry-after')).toBe('1')
      app.pass(1)
      expect((await app.ask()).status).toBe(200)
    })

    test('a response to a permanent block has no Retry-After', async () => {
      const app = await start({})
      await app.limiter.block('a', { for: Infinity })
      const blocked = await app.ask()
      expect(blocked.status).toBe(429)
      expect(await blocked.json()).toMatchObject({ type: ABNORMAL, status: 429 })
      expect(blocked.headers.get('retry-after')).toBeNull()
      expect(await (await app.ask('a', 'text/plain')).text()).toBe('Blocked\n')
      await app.limiter.unblock('a')
      expect((await app.ask()).status).toBe(200)
    })

    test('with ban.count, outcomes are strikes and refusals are not', async () => {
      const app = await start({ limit: 4, ban: { ...BAN, count: { only: 401 } } }, () => ({ status: 401 }))
      expect(await app.statuses(2)).toEqual([401, 401])
      app.pass(10_000)
      expect(await app.statuses(1)).toEqual([401])
      await until('the third 401 has banned', async () => (await app.limiter.peek('a')).reason === 'banned')
      const others = await start({ ban: { ...BAN, count: { only: (status: number) => status === 401 } } })
      expect(await others.statuses(9)).toEqual([200, ...Array.from({ length: 8 }, () => 429)])
      expect((await others.limiter.peek('a')).reason).toBe('limited')
    })

    test('a request admitted from a queue is no strike, and one that waits in vain is', async () => {
      const app = await start({ limit: 1, window: 200, store: memoryStore(), respond: queue(), ban: BAN })
      const many = await Promise.all(Array.from({ length: 6 }, () => app.ask()))
      expect(many.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200))
      const short = await start({ window: '1h', respond: queue({ maxWait: 5 }), ban: BAN })
      expect(await short.statuses(4)).toEqual([200, 503, 503, 429])
    })

    test('in report mode no client is banned', async () => {
      const app = await start({ enforce: { mode: 'report' }, ban: BAN })
      expect(await app.statuses(6)).toEqual(Array.from({ length: 6 }, () => 200))
      expect((await app.limiter.peek('a')).reason).toBe('limited')
    })

    test('with escalate each rung has its responder, and the last one serves all later rungs', async () => {
      const app = await start({
        ban: { ...BAN, for: ['10m', '1h', '1d'], respond: escalate([reject(), shadow({ body: 'welcome' })]) },
      })
      expect(await app.statuses(4)).toEqual([200, 429, 429, 429])
      app.pass(600_000)
      expect(await app.statuses(3)).toEqual([200, 429, 429])
      const shadowed = await app.ask()
      expect([shadowed.status, await shadowed.text(), shadowed.headers.get('retry-after')]).toEqual([
        200,
        'welcome',
        null,
      ])
      app.pass(3_600_000)
      expect(await app.statuses(4)).toEqual([200, 429, 429, 200])
    })

    test.each([
      ['degrade', degrade()],
      ['throttle', throttle({ bytesPerSecond: 1_000_000 })],
    ])('a banned client is refused with the responder %s, too', async (_, respond) => {
      const app = await start({ respond, ban: BAN })
      expect(await app.statuses(4)).toEqual([200, 200, 200, 429])
    })

    test('loopback addresses are banned only with private: true', async () => {
      const spared = await start({ key: byIp(), ban: BAN })
      expect(await spared.statuses(6)).toEqual([200, ...Array.from({ length: 5 }, () => 429)])
      expect((await spared.limiter.peek('127.0.0.1')).reason).toBe('limited')
      const withPrivate = await start({ key: byIp(), ban: { ...BAN, private: true } })
      await withPrivate.statuses(4)
      expect((await withPrivate.limiter.peek('127.0.0.1')).reason).toBe('banned')
    })

    test('with count, refusals become strikes once they are final', async () => {
      const app = await start({ count: { only: 'failure' }, ban: BAN }, () => ({ status: 404 }))
      expect(await app.statuses(4)).toEqual([404, 429, 429, 429])
      expect((await app.limiter.peek('a')).reason).toBe('banned')
      const well = await start({ count: { only: 'failure' }, ban: BAN })
      const many = await Promise.all(Array.from({ length: 6 }, () => well.ask()))
      expect(many.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200))
    })

    test('with several kinds, the kind that ban.by names is banned, whichever limit refuses', async () => {
      const limits = [
        slidingLog({ limit: 1, window: '1h', key: byHeader('x-account') }),
        slidingLog({ limit: 100, window: '1h', key: byHeader('x-key') }),
      ]
      const app = await start({
        limit: undefined,
        window: undefined,
        key: undefined,
        anonymous: 'by-ip',
        limits,
        ban: { ...BAN, by: 'header:x-key' },
      } as never)
      expect(await app.statuses(4)).toEqual([200, 429, 429, 429])
      expect((await app.limiter.peek({ 'header:x-key': 'a' } as never)).reason).toBe('banned')
    })

    test('unblock ends a ban and forgets its rung; reset forgets strikes and leaves the ban', async () => {
      const app = await start({ ban: BAN })
      await app.statuses(3)
      await app.limiter.reset('a')
      expect(await app.statuses(4)).toEqual([200, 429, 429, 429])
      await app.limiter.reset('a')
      expect((await app.limiter.peek('a')).ban?.rung).toBe(1)
      await app.limiter.unblock('a')
      expect(await app.statuses(4)).toEqual([200, 429, 429, 429])
      expect((await app.limiter.peek('a')).ban?.rung).toBe(1)
    })
  })
}
