import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import { policies } from '@sluice/policies'
import makeExpress, { type Express } from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { warningsDuring } from '../support/process-events.js'

const LIMIT = { limit: 100, window: '1m' } as const

/** Sends three requests through an app with these settings, which limits by address, or all as one. */
type Send = (settings: object, asOne?: boolean, more?: object) => Promise<void>

const byServer = async (listen: () => { address(): AddressInfo | string | null; close(): unknown }) => {
  const server = listen()
  await once(server as never, 'listening')
  for (let n = 0; n < 3; n++) {
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { headers: { connection: 'close' } })
  }
  server.close()
}

const throughExpress =
  (make: () => Express): Send =>
  (settings, asOne, more) => {
    const app = make()
    for (const [name, value] of Object.entries(settings)) app.set(name, value)
    app.use(express.rateLimit({ ...LIMIT, ...(asOne && { key: express.everyone() }), ...more }))
    return byServer(() => app.listen(0, '127.0.0.1'))
  }

const throughKoa: Send = (settings, asOne, more) => {
  const app = Object.assign(new Koa(), settings)
  app.use(koa.rateLimit({ ...LIMIT, ...(asOne && { key: express.everyone() }), ...more }))
  app.use((ctx) => {
    ctx.body = 'done'
  })
  return byServer(() => app.listen(0, '127.0.0.1'))
}

const throughFastify: Send = async (settings, asOne, more) => {
  const app = makeFastify(settings)
  await app.register(fastify.rateLimit, { ...LIMIT, ...(asOne && { key: express.everyone() }), ...more })
  // A child shares the server, and so the warning.
  await app.register(async (child) => {
    child.get('/', async () => 'done')
  })
  for (let n = 0; n < 3; n++) await app.inject({ url: '/', remoteAddress: '203.0.113.9' })
  await app.close()
}

const CASES: Record<string, { send: Send; open: object; closed: object[]; says: RegExp }> = {
  'Express 5': {
    send: throughExpress(makeExpress),
    open: { 'trust proxy': true },
    closed: [{}, { 'trust proxy': 1 }, { 'trust proxy': 'loopback' }, { 'trust proxy': false }],
    says: /^app\.set\('trust proxy', true\) trusts X-Forwarded-For from everyone/,
  },
  'Express 4': {
    send: throughExpress(makeExpress4),
    open: { 'trust proxy': true },
    closed: [{}, { 'trust proxy': 1 }],
    says: /^app\.set\('trust proxy', true\) trusts/,
  },
  'Express by a range': {
    send: throughExpress(makeExpress),
    open: { 'trust proxy': '0.0.0.0/1, 128.0.0.0/1' },
    closed: [{ 'trust proxy': '127.0.0.0/8, ::1/128' }],
    says: /^app\.set\('trust proxy', …\) trusts/,
  },
  'Express by a function': {
    send: throughExpress(makeExpress),
    open: { 'trust proxy': () => true },
    closed: [
      { 'trust proxy': (_address: string, hop: number) => hop === 0 },
      { 'trust proxy': (address: string) => /127\.0\.0\.1$/.test(address) },
    ],
    says: /^app\.set\('trust proxy', …\) trusts/,
  },
  Koa: {
    send: throughKoa,
    open: { proxy: true },
    closed: [{}, { proxy: true, maxIpsCount: 1 }, { maxIpsCount: 0 }],
    says: /^app\.proxy without maxIpsCount trusts/,
  },
  Fastify: {
    send: throughFastify,
    open: { trustProxy: true },
    closed: [{}, { trustProxy: 1 }, { trustProxy: '127.0.0.1' }, { trustProxy: ['10.0.0.0/8', 'loopback'] }],
    // Not "or how many there are", as elsewhere: Fastify trusts no proxy then.
    says: /^trustProxy: true trusts .*; name your proxies$/,
  },
}

/** The addresses of the requests in these tests. */
const OWN = ['127.0.0.1', '203.0.113.9']
const asOne = express.keyed('one', () => 'all')

const storeWith = async (name: string) => {
  const store = express.memoryStore({ allow: express.storeList('own') })
  for (const ip of OWN) await store.list(name).add({ ip })
  return store
}

const document = async (policy: object, overrides: object[] = []) => {
  const api = { key: 'one', limits: [{ limit: 1, window: '1m' }], ...policy }
  const keys = { one: () => 'all' }
  const loaded = await policies.from({ object: { version: 1, policies: { api }, overrides }, keys })
  return { policies: loaded, limit: undefined, window: undefined, key: undefined }
}

/** Ways to admit more than one request of `OWN`. */
const ALLOWING: Record<string, () => object | Promise<object>> = {
  ipRanges: () => ({ allow: express.ipRanges(OWN) }),
  list: () => ({ allow: express.list({ ip: OWN }) }),
  'a composed kind': () => {
    const key = express.compose(express.byIp(), asOne)
    return { key, allow: express.list({ 'ip+one': OWN.map((ip) => [ip, 'all']) }) }
  },
  'a list in the store': async () => ({ store: await storeWith('other'), allow: express.storeList('other') }),
  'a list of the store': async () => ({ store: await storeWith('own') }),
  'a list in a document': () => document({ allow: { ip: OWN } }),
  'a range in a document': () =>
    document(
      {},
      OWN.map((ip) => ({ policy: 'api', range: `${ip}/31`, limits: [{ limit: 9 }] })),
    ),
  'an address in a document': () =>
    document(
      {},
      OWN.map((ip) => ({ policy: 'api', key: { ip }, limits: [{ limit: 9 }] })),
    ),
  'the start of an address in a document': () =>
    document(
      {},
      OWN.map((ip) => ({ policy: 'api', prefix: { ip: ip.slice(0, 4) }, limits: [{ limit: 9 }] })),
    ),
}

describe.each(Object.entries(CASES))('%s', (_name, { send, open, closed, says }) => {
  const warnings: Error[] = []
  const listen = (warning: Error) => {
    if ((warning as { code?: string }).code === 'SLUICE_OPEN_PROXY') warnings.push(warning)
  }
  beforeEach(() => {
    warnings.length = 0
    process.on('warning', listen)
  })
  afterEach(() => {
    process.removeListener('warning', listen)
  })

  test('a proxy setting that lets anyone choose an address causes one warning per app', async () => {
    await send(open)
    await send(open)
    expect(warnings.map(({ name, message }) => [name, says.test(message)])).toEqual([
      ['SluiceWarning', true],
      ['SluiceWarning', true],
    ])
  })

  test('an address that anyone could choose is not banned, with one warning per process', async () => {
    const ban = { after: 1, within: '1m', for: ['1h'], private: true }
    const reasons: (string | undefined)[] = []
    const onVerdict = (_: unknown, { reason }: express.Verdict) => void reasons.push(reason)
    const more = { limit: 1, ban, onVerdict }
    const warned = await warningsDuring(() => send(open, false, more))
    expect(reasons).toEqual([undefined, 'limited', 'limited'])
    const codes = warned.map((warning) => (warning as NodeJS.ErrnoException).code)
    expect(codes.filter((code) => code === 'SLUICE_BAN_OPEN_PROXY')).toHaveLength(1)
    reasons.length = 0
    expect(await warningsDuring(() => send(closed[0] as object, false, more))).toEqual([])
    expect(reasons).toEqual([undefined, 'banned', 'banned'])
  })

  test.each(Object.keys(ALLOWING))('an address that anyone could choose is not allowed by %s', async (by) => {
    for (const [settings, count] of [
      [open, 1],
      [closed[0] as object, 3],
    ] as const) {
      let admitted = 0
      const more = { limit: 1, key: asOne, ...(await ALLOWING[by]?.()) }
      const onVerdict = (_: unknown, { allowed }: express.Verdict) => {
        if (allowed) admitted++
      }
      warnings.length = 0
      await send(settings, true, { ...more, onVerdict })
      expect(admitted).toBe(count)
      // Also without a limit by address.
      expect(warnings.map(({ message }) => says.test(message))).toEqual(settings === open ? [true] : [])
    }
  })

  test('an allow list causes a warning even if it matches no request; deny lists hold', async () => {
    await send(open, true, { allow: express.ipRanges(['192.0.2.7']) })
    expect(warnings).toHaveLength(1)
    const reasons: (string | undefined)[] = []
    const onVerdict = (_: unknown, { reason }: express.Verdict) => void reasons.push(reason)
    const [allow, deny] = [express.ipRanges(OWN), express.ipRanges(['127.0.0.0/8', '203.0.113.0/24'])]
    await send(open, true, { allow, deny, onVerdict })
    expect(reasons).toEqual(['denied', 'denied', 'denied'])
  })

  test('other kinds, and functions, can allow requests behind an open proxy', async () => {
    const reasons: (string | undefined)[] = []
    const onVerdict = (_: unknown, { kind }: express.Verdict) => void reasons.push(kind)
    await send(open, true, { limit: 1, key: asOne, allow: express.list({ one: ['all'] }), onVerdict })
    await send(open, true, { limit: 1, allow: () => true, onVerdict })
    expect(reasons).toEqual(Array(6).fill('listed'))
    expect(warnings).toEqual([])
  })

  test('named or counted proxies, and limits not by address, cause no warning', async () => {
    for (const settings of closed) await send(settings)
    await send(open, true)
    expect(warnings).toEqual([])
  })
})
