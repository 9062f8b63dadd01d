import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeExpress from 'express'
import makeFastify from 'fastify'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { warningsDuring } from '../support/process-events.js'

type Options = Record<string, unknown>

interface Served {
  readonly url: string
  close(): Promise<unknown>
}

async function listening(server: import('node:http').Server): Promise<Served> {
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close }
}

const LIMIT = { limit: 10_000, window: '1m' }

/** An app that runs the same limiter `times` times for each request. */
const APPS: Record<string, (options: Options, times?: number) => Promise<Served>> = {
  Express(options, times = 1) {
    const app = makeExpress()
    const limit = express.rateLimit({ ...LIMIT, ...options } as never)
    for (let n = 0; n < times; n++) app.use(limit)
    app.get('/', (_req, res) => void res.end('done'))
    return listening(app.listen(0, '127.0.0.1'))
  },
  Koa(options, times = 1) {
    const app = new Koa()
    const limit = koa.rateLimit({ ...LIMIT, ...options } as never)
    for (let n = 0; n < times; n++) app.use((ctx, next) => limit(ctx, next))
    app.use((ctx) => {
      ctx.body = 'done'
    })
    return listening(app.listen(0, '127.0.0.1'))
  },
  async Fastify(options, times = 1) {
    const app = makeFastify()
    await app.register(fastify.rateLimit, { ...LIMIT, global: false } as never)
    const limit = app.rateLimit({ ...LIMIT, ...options } as never)
    app.get('/', { onRequest: Array(times).fill(limit) }, async () => 'done')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/`, close: () => app.close() }
  },
}

/** Sends requests one behind the other on one connection, which is far faster than as many calls of `fetch`. */
async function sendAll(url: string, headers: Record<string, string>, requests: number): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const request = (connection: string) =>
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n${fields.join('')}\r\n`
  socket.write(request('keep-alive').repeat(requests - 1) + request('close'))
  const responses = await text(socket)
  expect(responses.match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(requests)
}

const codesOf = (warnings: readonly Error[]) => warnings.map((warning) => (warning as { code?: string }).code)

describe.each(Object.keys(APPS))('%s', (framework) => {
  const serve = APPS[framework] as (options: Options, times?: number) => Promise<Served>

  const codesAfter = async (options: Options, headers: Record<string, string> = {}, requests = 2, times = 1) => {
    const served = await serve(options, times)
    const warnings = await warningsDuring(async () => {
      await sendAll(served.url, headers, requests)
    })
    await served.close()
    return codesOf(warnings)
  }

  test('an untrusted proxy causes one warning', async () => {
    expect(await codesAfter({}, { 'x-forwarded-for': '203.0.113.9' })).toEqual(['SLUICE_UNTRUSTED_PROXY'])
  })

  test.each(['forwarded', 'x-real-ip', 'cf-connecting-ip'])(
    'a proxy that names the client in %s alone causes one warning',
    async (field) => {
      const value = field === 'forwarded' ? 'for=203.0.113.9' : '203.0.113.9'
      expect(await codesAfter({}, { [field]: value })).toEqual(['SLUICE_UNTRUSTED_PROXY'])
    },
  )

  test('no warning of an untrusted proxy is emitted if silenced, without limits by address, or without a proxy', async () => {
    const proxied = { 'x-forwarded-for': '203.0.113.9' }
    expect(await codesAfter({ warnings: { SLUICE_UNTRUSTED_PROXY: false } }, proxied)).toEqual([])
    expect(await codesAfter({ key: express.everyone() }, proxied)).toEqual([])
    expect(await codesAfter({})).toEqual([])
  })

  test('a thousand requests from one private address cause a warning', async () => {
    expect(await codesAfter({}, {}, 1001)).toEqual(['SLUICE_ONE_CLIENT'])
  })

  test('a limiter that runs twice for one request causes a warning', async () => {
    expect(await codesAfter({}, {}, 2, 2)).toEqual(['SLUICE_SAME_LIMITER_TWICE'])
  })

  test('a user function that finds no user in the first hundred requests causes one warning', async () => {
    const none = () => undefined
    for (const anonymous of ['by-ip', 'skip']) {
      const options = { anonymous, key: express.byUser(none) }
      expect(await codesAfter(options, {}, 250)).toEqual(['SLUICE_NO_USER'])
      expect(await codesAfter(options, {}, 99)).toEqual([])
      expect(await codesAfter({ ...options, warnings: { SLUICE_NO_USER: false } }, {}, 100)).toEqual([])
    }
    const anonymous = 'by-ip'
    expect(await codesAfter({ anonymous, key: none }, {}, 100)).toEqual(['SLUICE_NO_USER'])
    expect(await codesAfter({ anonymous, key: async () => undefined }, {}, 100)).toEqual(['SLUICE_NO_USER'])
    const perRoute = express.compose(express.byUser(none), express.byMethod())
    expect(await codesAfter({ anonymous, key: perRoute, respond: express.queue() }, {}, 100)).toEqual([
      'SLUICE_NO_USER',
    ])
  })

  test('a user function that finds one user causes no warning, nor does a header that clients do not send', async () => {
    let calls = 0
    const anonymous = 'by-ip'
    const hundredth = () => (++calls === 100 ? 'ann' : undefined)
    expect(await codesAfter({ anonymous, key: express.byUser(hundredth) }, {}, 250)).toEqual([])
    expect(calls).toBe(250)
    expect(await codesAfter({ anonymous, key: express.byHeader('x-api-key') }, {}, 100)).toEqual([])
  })

  test('a key function that returns a whole IPv6 address causes a warning', async () => {
    expect(await codesAfter({ key: () => '2001:db8::1' })).toEqual(['SLUICE_UNGROUPED_IPV6'])
    expect(await codesAfter({ key: () => '::ffff:192.0.2.1' })).toEqual([])
    expect(await codesAfter({ key: express.byIp() })).toEqual([])
  })
})

describe('proxies with public addresses, such as a CDN', () => {
  /** Requests of an app whose connections seem to come from an address. */
  async function codesFrom(address: string, fields: readonly Record<string, string>[]): Promise<unknown[]> {
    const app = makeExpress()
    app.use((req, _res, next) => {
      Object.defineProperty(req.socket, 'remoteAddress', { value: address, configurable: true })
      next()
    })
    app.use(express.rateLimit(LIMIT as never))
    app.get('/', (_req, res) => void res.end('done'))
    const served = await listening(app.listen(0, '127.0.0.1'))
    const warnings = await warningsDuring(async () => {
      for (const each of fields) await (await fetch(served.url, { headers: each })).text()
    })
    await served.close()
    return warnings.map(({ message }) => message)
  }
  const ofCloudflare = { 'x-forwarded-for': '203.0.113.9', 'cf-connecting-ip': '203.0.113.9' }

  test('a hundred requests that all name another client cause one warning', async () => {
    expect(await codesFrom('104.16.0.1', Array(101).fill(ofCloudflare))).toEqual([
      expect.stringContaining('requests come through a proxy (from 104.16.0.1, with X-Forwarded-For)'),
    ])
    const { 'x-forwarded-for': _, ...alone } = ofCloudflare
    expect(await codesFrom('104.16.0.1', Array(101).fill(alone))).toEqual([
      expect.stringMatching(/with CF-Connecting-IP.*have it send X-Forwarded-For/),
    ])
  })

  test('fields that only some clients write cause no warning', async () => {
    expect(await codesFrom('203.0.113.7', [{}, ...Array(110).fill(ofCloudflare)])).toEqual([])
  })
})

test('an address that the framework reads from another field causes no warning', async () => {
  const app = new Koa({ proxy: true, maxIpsCount: 1, proxyIpHeader: 'CF-Connecting-IP' })
  const limit = koa.rateLimit(LIMIT as never)
  app.use((ctx, next) => limit(ctx, next))
  app.use((ctx) => {
    ctx.body = 'done'
  })
  const served = await listening(app.listen(0, '127.0.0.1'))
  const warnings = await warningsDuring(() => sendAll(served.url, { 'cf-connecting-ip': '203.0.113.9' }, 2))
  await served.close()
  expect(codesOf(warnings)).toEqual([])
})

test('a proxy that the app trusts, and that sends no X-Forwarded-For, causes one warning', async () => {
  const app = makeExpress()
  app.set('trust proxy', 'loopback')
  app.use(express.rateLimit(LIMIT as never))
  app.get('/', (_req, res) => void res.end('done'))
  const served = await listening(app.listen(0, '127.0.0.1'))
  const warnings = await warningsDuring(() => sendAll(served.url, { 'x-real-ip': '203.0.113.9' }, 2))
  const proxied = await warningsDuring(() => sendAll(served.url, { 'x-forwarded-for': '203.0.113.9' }, 2))
  await served.close()
  expect(codesOf(warnings)).toEqual(['SLUICE_UNTRUSTED_PROXY'])
  expect(codesOf(proxied)).toEqual([])
})

test('warnings accepts only codes that the limiter can emit', () => {
  const make = (warnings: object) => () => express.rateLimit({ ...LIMIT, warnings } as never)
  expect(make({ SLUICE_ONE_CLENT: false })).toThrow(
    'policy "default": warnings: "SLUICE_ONE_CLENT": unknown code: did you mean SLUICE_ONE_CLIENT?',
  )
  expect(make({ SLUICE_EVICTION: false })).toThrow(
    'unknown code: it is emitted elsewhere; silence it with node --disable-warning=SLUICE_EVICTION',
  )
  expect(make({ SLUICE_ONE_CLIENT: 'never' })).toThrow(
    'warnings: SLUICE_ONE_CLIENT: expected true or false, got "never"',
  )
})
