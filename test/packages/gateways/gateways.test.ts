// Release: runs gateways. Takes long: begins first.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { startCaddy, startHaproxy } from '../../support/gateways.js'
import { startNginx } from '../../support/nginx.js'
import { until } from '../../support/until.js'
import { type App, example, type RunningDecider, send, startApp, startDecider, withPorts } from './support.js'

const isClientError = (status: number) => status >= 400 && status < 500

interface Sample {
  readonly dialect: string
  /** The example, and the one that admits during an outage of the decider: a file, or a change of the first. */
  readonly closed: string
  readonly open: string | { readonly replace: [string, string] }
  readonly start: (settings: string, port: number) => Promise<{ stop(): Promise<void> }>
  /** The status for clients of the closed example during an outage of the decider. */
  readonly away: number
  /** Ports in the example besides those of the gateway, the app and the decider. */
  readonly more: readonly number[]
}

const SAMPLES: Record<string, Sample> = {
  nginx: {
    dialect: 'nginx',
    closed: 'nginx/nginx.conf',
    open: 'nginx/nginx-open.conf',
    start: startNginx,
    away: 503,
    more: [],
  },
  caddy: {
    dialect: 'forward-auth',
    closed: 'caddy/Caddyfile',
    open: 'caddy/Caddyfile.open',
    start: startCaddy,
    away: 502,
    more: [9191],
  },
  haproxy: {
    dialect: 'haproxy',
    closed: 'haproxy/haproxy.cfg',
    open: { replace: ['/v1/decide closed', '/v1/decide open'] },
    start: startHaproxy,
    away: 503,
    more: [],
  },
}

test('docs/gateways.md contains the locations of the example for nginx unchanged', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/gateways.md', import.meta.url)), 'utf8')
  const [, shown = ''] = /^```nginx\n(.*?)^```$/ms.exec(page) ?? []
  expect(shown).toContain('auth_request /_sluice;')
  expect(readFileSync(example('nginx/nginx.conf'), 'utf8')).toContain(shown)
})

describe.each(Object.entries(SAMPLES))('%s', (_, sample) => {
  let app: App
  const stops: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.seen.length = 0
  })
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop()
  })

  const decides = async (port: number): Promise<RunningDecider> => {
    const decider = await startDecider(port, [
      ...['--document', example('policies.yaml'), '--dialect', sample.dialect, '--trust-proxy', 'loopback'],
    ])
    stops.push(() => decider.end('SIGKILL'))
    return decider
  }

  /** Starts a gateway with one of the examples. Resolves to its port. */
  const fronts = async (mode: 'closed' | 'open', decider: number): Promise<number> => {
    const front = await freePort()
    const ports = { 8080: front, 3000: app.port, 9190: decider }
    const { closed, open } = sample
    const path = mode === 'open' && typeof open === 'string' ? open : closed
    const others = mode === 'open' ? await Promise.all(sample.more.map(async (port) => [port, await freePort()])) : []
    let settings = withPorts(path, { ...ports, ...Object.fromEntries(others) })
    if (mode === 'open' && typeof open !== 'string') {
      expect(settings.split(open.replace[0])).toHaveLength(2)
      settings = settings.replace(...open.replace)
    }
    const gateway = await sample.start(settings, front)
    stops.push(() => gateway.stop())
    return front
  }

  test('a gateway shows clients their quota, and refuses with 429, Retry-After and RateLimit', async () => {
    const decider = await freePort()
    await decides(decider)
    const front = await fronts('closed', decider)
    const first = await send(front, 'GET /items?a=b')
    expect([first.status, first.field('x-app')]).toEqual([200, 'yes'])
    expect(first.field('ratelimit')).toMatch(/^"all";r=2;t=\d+$/)
    expect(first.field('ratelimit-policy')).toBe('"all";q=3;w=10')
    const statuses: number[] = []
    let refused = first
    for (let n = 0; n < 6 && refused.status === 200; n++) {
      refused = await send(front, 'GET /items')
      statuses.push(refused.status)
    }
    expect(refused.status).toBe(429)
    expect(refused.field('retry-after')).toMatch(/^\d+$/)
    expect(refused.field('ratelimit')).toMatch(/^"all";r=0;t=\d+$/)
    expect(refused.field('cache-control')).toContain('no-store')
    expect(refused.field('content-type')).toContain('application/problem+json')
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429 })
    expect(refused.field('x-app')).toBeUndefined()
    expect(app.seen.length).toBe(statuses.length)
  })

  test('a gateway passes on method, path and body, and the responses of the app, unchanged', async () => {
    const decider = await freePort()
    await decides(decider)
    const front = await fronts('closed', decider)
    const posted = await send(front, 'POST /login', [], 'user=ann')
    expect([posted.status, posted.body.includes('user=ann')]).toEqual([200, true])
    expect(posted.field('ratelimit')).toContain('"login";r=1')
    const chunked = await send(front, 'PUT /', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n')
    expect([chunked.status, chunked.body.includes('hello')]).toEqual([200, true])
    const forbidden = await send(front, 'GET /forbidden')
    expect([forbidden.status, forbidden.field('x-app')]).toEqual([403, 'yes'])
    // No policy matches it.
    const unlimited = await send(front, 'OPTIONS /a%2Fb?c')
    expect([unlimited.status, unlimited.field('x-app'), unlimited.field('ratelimit')]).toEqual([200, 'yes', undefined])
    const seen = app.seen.map(({ method, url }) => `${method} ${url}`)
    expect(seen).toEqual(['POST /login', 'PUT /', 'GET /forbidden', 'OPTIONS /a%2Fb?c'])
  })

  test('a client of a gateway cannot forge its address, path, method or host', async () => {
    const decider = await freePort()
    await decides(decider)
    const front = await fronts('closed', decider)
    const forged = (n: number): string[][] => [
      [`X-Forwarded-For: 198.51.100.${n}`],
      [`X-Original-For: 198.51.100.${n}`, `X-Original-For: 198.51.101.${n}`],
      [`x_original_for: 198.51.100.${n}`, `X_Forwarded_For: 198.51.100.${n}`, `X-Real-IP: 198.51.100.${n}`],
      [`Forwarded: for=198.51.100.${n}`, 'Connection: X-Original-For, X-Forwarded-For, X-Original-URI'],
      ['X-Original-URI: /other', 'X-Forwarded-Uri: /other', 'X-Original-Method: GET', 'X-Forwarded-Method: GET'],
      ['X-Original-Host: other', 'X-Forwarded-Host: other', 'X-Original-URI: /a', 'X-Original-URI: /b'],
      ['X-Sluice-Status: 200', 'X-Sluice-Decided-By: store', 'X-Sluice-Token: a'],
    ]
    // Two logins in a minute, whatever the headers claim.
    const statuses: number[] = []
    for (const headers of forged(1)) statuses.push((await send(front, 'POST /login', headers, 'a')).status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
    expect(statuses.every((status) => status === 200 || status === 429 || status === 400)).toBe(true)
    for (const line of [
      'POST /login?x=1',
      'POST /x/%2e%2e/login',
      'POST //login',
      'POST http://shop.example/login',
      'POST /Login/',
    ]) {
      const { status } = await send(front, line, [], 'a')
      expect([line, status]).toEqual([line, 429])
    }
  })

  test('a client cannot make the decider fail, and so pass the open example without a limit', async () => {
    const decider = await freePort()
    await decides(decider)
    const front = await fronts('open', decider)
    // The quota of logins is used up, so any request that the decider does not refuse reaches the app.
    for (let n = 0; n < 3; n++) await send(front, 'POST /login', [], 'a')
    app.seen.length = 0
    const filler = (count: number, size: number) =>
      Array.from({ length: count }, (_, n) => `a${n}: ${'x'.repeat(size)}`)
    for (const headers of [
      filler(600, 1),
      filler(90, 60),
      ['A: \x01', ...filler(20, 900)],
      ['A: \x7f\xff', ...filler(20, 900)],
      ['Expect: 100-continue'],
      ['Expect: everything'],
      ['Upgrade: websocket', 'Connection: Upgrade'],
      ['Accept: ', 'Cookie: a=b; =; ;', 'X-Forwarded-For: ,,,'],
    ]) {
      const response = await send(front, 'POST /login', headers, 'a').catch(() => undefined)
      expect([headers[0], response?.status === 200, app.seen.length]).toEqual([headers[0], false, 0])
    }
    expect((await send(front, 'OPTIONS /')).status).toBe(200)
  })

  test.each(['closed', 'open'] as const)('mistakes of a client get a 4xx from the %s example', async (mode) => {
    const decider = await freePort()
    await decides(decider)
    const front = await fronts(mode, decider)
    const many = Array.from({ length: 600 }, (_, n) => `a${n}: x`)
    const wrong: Record<string, () => ReturnType<typeof send>> = {
      'HTTP/1.0 without a host': () => send(front, 'GET /', [], '', { version: 'HTTP/1.0', host: [] }),
      'HTTP/1.1 without a host': () => send(front, 'GET /', [], '', { host: [] }),
      'an empty host': () => send(front, 'GET /', [], '', { host: ['Host: '] }),
      'two hosts': () => send(front, 'GET /', [], '', { host: ['Host: a', 'Host: b'] }),
      'a backslash in the path': () => send(front, 'GET /a\\b'),
      'a long method': () => send(front, `${'A'.repeat(40)} /`),
      'a control character in a header': () => send(front, 'GET /', ['A: a\x01b']),
      'many headers': () => send(front, 'GET /', many),
    }
    for (const [name, ask] of Object.entries(wrong)) {
      const { status, body } = await ask()
      expect([name, status, app.seen.length]).toEqual([name, expect.toSatisfy(isClientError, '4xx'), 0])
      // Neither about the decider nor about the headers that the gateway sends it.
      expect(body).not.toMatch(/x-original|x-forwarded|decider/i)
    }
    expect((await send(front, 'GET /')).status).toBe(200)
  })

  test('a request with two lengths is one request, or none', async () => {
    const decider = await freePort()
    await decides(decider)
    const front = await fronts('closed', decider)
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    await send(front, 'POST /', ['Transfer-Encoding: chunked', 'Content-Length: 4'], `0\r\n\r\n${smuggled}`).catch(
      () => {},
    )
    await send(front, 'POST /', ['Transfer-Encoding : chunked'], `0\r\n\r\n${smuggled}`).catch(() => {})
    expect(app.seen.filter(({ url }) => url === '/smuggled')).toEqual([])
  })

  test('during an outage of the decider the closed example refuses, and it decides again afterwards', async () => {
    const decider = await freePort()
    const front = await fronts('closed', decider)
    const away = await send(front, 'GET /')
    expect([away.status, app.seen.length]).toEqual([sample.away, 0])
    await decides(decider)
    const back = await until('the decider decides', async () => {
      const response = await send(front, 'GET /')
      return response.status === 200 && response
    })
    expect(back.field('ratelimit')).toContain('"all"')
  })

  test('during an outage of the decider the open example admits, and it decides again afterwards', async () => {
    const decider = await freePort()
    const first = await decides(decider)
    const front = await fronts('open', decider)
    expect((await send(front, 'GET /')).field('ratelimit')).toContain('"all";r=2')
    expect(await first.end()).toBe(0)
    for (let n = 0; n < 6; n++) {
      const response = await send(front, 'POST /login', [], 'a')
      expect([response.status, response.field('ratelimit')]).toEqual([200, undefined])
    }
    await decides(decider)
    await until('the decider decides', async () => (await send(front, 'GET /')).field('ratelimit') !== undefined)
  })
})
