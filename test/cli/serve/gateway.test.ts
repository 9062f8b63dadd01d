import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { ask, decide, documentOf, endWithTests, gateway, json, raw, serving, THREE } from './support.js'

endWithTests()

type Pairs = [string, string][]

/** The headers of each dialect, in the order method, URI, host, client. */
const NAMES = {
  nginx: ['X-Original-Method', 'X-Original-URI', 'X-Original-Host', 'X-Original-For'],
  haproxy: ['X-Original-Method', 'X-Original-URI', 'X-Original-Host', 'X-Original-For'],
  'forward-auth': ['X-Forwarded-Method', 'X-Forwarded-Uri', 'X-Forwarded-Host', 'X-Forwarded-For'],
} as const

const fieldsOf = (
  dialect: keyof typeof NAMES,
  method = 'GET',
  uri = '/',
  host = 'example.com',
  client = '192.0.2.7',
): Pairs => [method, uri, host, client].map((value, i) => [NAMES[dialect][i] as string, value])

describe.each(Object.keys(NAMES) as (keyof typeof NAMES)[])('%s', (dialect) => {
  const refusal = dialect === 'nginx' ? 403 : 429
  const clientMistake = dialect === 'nginx' ? 403 : 400

  test("a client over its limit is refused with the gateway's status and the quota fields", async () => {
    const decider = await serving(gateway(dialect, THREE))
    const first = await ask(decider, { headers: fieldsOf(dialect) })
    expect([first.status, first.text]).toEqual([204, ''])
    expect(first.headers).toMatchObject({
      ratelimit: '"all";r=2;t=60',
      'ratelimit-policy': '"all";q=3;w=60',
      'x-sluice-decided-by': 'store',
    })
    await ask(decider, { headers: fieldsOf(dialect) })
    await ask(decider, { headers: fieldsOf(dialect) })
    const refused = await ask(decider, { headers: fieldsOf(dialect) })
    expect([refused.status, refused.json.status]).toEqual([refusal, 429])
    expect(refused.headers).toMatchObject({
      'x-sluice-status': '429',
      'retry-after': expect.stringMatching(/^\d+$/),
      ratelimit: expect.stringMatching(/^"all";r=0;t=\d+$/),
      'cache-control': 'no-store',
    })
    expect((await ask(decider, { headers: fieldsOf(dialect, 'GET', '/', 'example.com', '192.0.2.8') })).status).toBe(
      204,
    )
  })

  test('a path with raw UTF-8 bytes, including A0, is decided', async () => {
    const text = documentOf('all: { limits: [{ limit: 9, window: 1m }] }')
    const decider = await serving(gateway(dialect, text))
    for (const uri of ['/\xc3\xa9', '/voil\xc3\xa0']) {
      expect((await ask(decider, { headers: fieldsOf(dialect, 'GET', uri) })).status).toBe(204)
    }
    expect((await ask(decider, { headers: fieldsOf(dialect, 'GET', '/a b') })).headers['x-sluice-status']).toBe('400')
  })

  test('a path with too many readings is a bad request, whatever its end', async () => {
    const text = documentOf('login: { match: { paths: [/login] }, limits: [{ limit: 9, window: 1m }] }')
    const decider = await serving(gateway(dialect, text))
    for (const uri of [`${'/x/..'.repeat(50)}/login`, `${'/X'.repeat(1000)}/login`, '//ann@example.com/login']) {
      const refused = await ask(decider, { headers: fieldsOf(dialect, 'GET', uri) })
      expect([refused.status, refused.json.status]).toEqual([dialect === 'nginx' ? 403 : 400, 400])
    }
    const admitted = await ask(decider, { headers: fieldsOf(dialect, 'GET', '/x/..;/login') })
    expect(admitted.headers.ratelimit).toBe('"login";r=8;t=60')
  })

  test("policies match the client's method, host, path and headers", async () => {
    const text = documentOf(`
login: { match: { methods: [POST], paths: [/login], hosts: [example.com] }, limits: [{ limit: 1, window: 1m }] }
keyed: { match: { headers: { x-api-key: true } }, key: "header:x-api-key", limits: [{ limit: 1, window: 1m }] }`)
    const decider = await serving(gateway(dialect, text))
    const by = async (...args: Parameters<typeof fieldsOf>) =>
      (await ask(decider, { headers: fieldsOf(...args) })).headers['x-sluice-decided-by']
    expect(await by(dialect, 'GET', '/login')).toBe('none')
    expect(await by(dialect, 'POST', '/login', 'other.example')).toBe('none')
    expect(await by(dialect, 'POST', '/login?a=b')).toBe('store')
    // In any spelling that a router accepts.
    for (const uri of [
      '/login',
      '/Login/',
      '/%6cogin',
      '/x/%2e%2e/login',
      '/x/../login',
      'http://example.com/login',
      '/login;a',
    ]) {
      const { status, headers } = await ask(decider, { headers: fieldsOf(dialect, 'POST', uri) })
      expect([uri, status, headers['x-sluice-status']]).toEqual([uri, refusal, '429'])
    }
    const withKey = (key: string): Pairs => [...fieldsOf(dialect), ['X-Api-Key', key]]
    expect((await ask(decider, { headers: withKey('a') })).status).toBe(204)
    expect((await ask(decider, { headers: withKey('a') })).status).toBe(refusal)
    expect((await ask(decider, { headers: withKey('b') })).status).toBe(204)
  })

  test('the client is the last address that is not a trusted gateway', async () => {
    const decider = await serving(gateway(dialect, THREE, '--trust-proxy', '10.0.0.0/8'))
    const from = async (client: string) =>
      (await ask(decider, { headers: fieldsOf(dialect, 'GET', '/', 'example.com', client) })).status
    expect(await from('192.0.2.7')).toBe(204)
    expect(await from('198.51.100.1, 192.0.2.7')).toBe(204)
    expect(await from('x, 127.0.0.1, 192.0.2.7 , 10.1.2.3,127.0.0.1')).toBe(204)
    expect(await from('::ffff:192.0.2.7')).toBe(refusal)
    expect(await from('192.0.2.7:4711')).toBe(refusal)
    expect(await from('203.0.113.9, 192.0.2.7')).toBe(refusal)
    // All are trusted, or the text before them is not an address.
    expect(await from('10.0.0.1, 127.0.0.1')).toBe(204)
    expect(await from('nonsense, 10.0.0.1')).toBe(204)
  })

  test("several lines of the list count as one: the last line is the gateway's", async () => {
    const decider = await serving(gateway(dialect, THREE))
    const headers = (forged: string): Pairs => [[NAMES[dialect][3], forged], ...fieldsOf(dialect)]
    const statuses: number[] = []
    for (let n = 0; n < 4; n++) statuses.push((await ask(decider, { headers: headers(`198.51.100.${n}`) })).status)
    expect(statuses).toEqual([204, 204, 204, refusal])
  })

  test.each([0, 1, 2])("a second header %i is refused, as one of them may be the client's", async (i) => {
    const decider = await serving(gateway(dialect, THREE))
    const pairs = fieldsOf(dialect)
    for (const headers of [
      [[NAMES[dialect][i] as string, 'DELETE'], ...pairs],
      [...pairs, [NAMES[dialect][i]?.toLowerCase() as string, '/other']],
    ] as Pairs[]) {
      const response = await ask(decider, { headers })
      expect([response.status, response.json.detail]).toEqual([400, expect.stringContaining('expected it once')])
    }
    expect((await ask(decider, { headers: pairs })).headers.ratelimit).toContain('r=2')
  })

  test.each([0, 1, 3])('without header %i nothing is decided', async (i) => {
    const decider = await serving(gateway(dialect, THREE))
    const missing = fieldsOf(dialect).filter((_, at) => at !== i)
    // A header of almost this name is a different one.
    const almost: Pairs = [[(NAMES[dialect][i] as string).replaceAll('-', '_'), '192.0.2.7']]
    for (const headers of [missing, [...missing, ...almost]]) {
      const response = await ask(decider, { headers })
      expect([response.status, response.json.detail]).toEqual([400, expect.stringMatching(/is missing$/)])
    }
  })

  test.each<[string, string[], string]>([
    ['a method with a space', ['GET /'], 'expected a method such as GET'],
    ['a long method', ['A'.repeat(33)], 'expected a method such as GET'],
    ['a path with a space', ['GET', '/a b'], 'expected a path without spaces, control characters and backslashes'],
    ['a path with a backslash', ['GET', '/a\\b'], 'expected a path without spaces'],
    ['no host', ['GET', '/', ''], 'expected a request with a host'],
  ])("%s is refused with 400 as the client's mistake", async (_, [method, uri, host], detail) => {
    const decider = await serving(gateway(dialect, THREE))
    const wrong = fieldsOf(dialect, method, uri, host)
    for (const headers of [wrong, wrong.filter(([, value]) => value !== '')]) {
      const response = await ask(decider, { headers })
      expect([response.status, response.json.status]).toEqual([clientMistake, 400])
      expect(response.json.detail).toContain(detail)
      expect(response.headers).toMatchObject({ 'x-sluice-status': '400', 'x-sluice-decided-by': 'none' })
    }
  })

  test("malformed bytes are refused with 400 as the client's mistake", async () => {
    const decider = await serving(gateway(dialect, THREE))
    const response = await raw(decider, 'GET /v1/decide HTTP/1.1\r\nHost: a\r\nA: a\x01b\r\n\r\n')
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${clientMistake} `))
    expect(response).toMatch(/^X-Sluice-Decided-By: none\r\nX-Sluice-Status: 400\r$/m)
  })

  test.each<[number, string]>([
    [3, 'unknown'],
    [3, '192.0.2.7, unknown'],
    [3, ','],
  ])('header %i of %j is refused', async (i, value) => {
    const decider = await serving(gateway(dialect, THREE))
    const headers = fieldsOf(dialect).map(([name, given], at): [string, string] => [name, at === i ? value : given])
    expect((await ask(decider, { headers })).status).toBe(400)
  })

  test('a request with a body or another method is refused, and its connection closes', async () => {
    const decider = await serving(gateway(dialect, THREE))
    const post = await ask(decider, { method: 'POST', headers: fieldsOf(dialect) })
    expect([post.status, post.headers.connection]).toEqual([405, 'close'])
    const body = await ask(decider, { headers: [...fieldsOf(dialect), ['Content-Length', '1']], body: 'x' })
    expect([body.status, body.headers.connection]).toEqual([400, 'close'])
  })

  test('an untrusted gateway is refused', async () => {
    const decider = await serving([...gateway(dialect, THREE).slice(0, -1), '10.0.0.5'])
    const response = await ask(decider, { headers: fieldsOf(dialect) })
    expect([response.status, response.json.detail]).toEqual([
      400,
      expect.stringContaining('is not among --trust-proxy'),
    ])
    expect(decider.stderr).toContain('is not among --trust-proxy')
  })

  test('a gateway that disconnected is not reported as untrusted', async () => {
    const decider = await serving(gateway(dialect, THREE))
    const lines = fieldsOf(dialect).map(([name, value]) => `${name}: ${value}\r\n`)
    const request = `GET /v1/decide HTTP/1.1\r\nHost: a\r\n${lines.join('')}\r\n`
    for (let n = 0; n < 50; n++) {
      await new Promise<void>((resolve) => {
        const socket = connect(decider.port, '127.0.0.1', () => {
          socket.write(request, () => socket.resetAndDestroy())
        })
        socket.once('close', () => resolve())
      })
    }
    expect((await ask(decider, { headers: fieldsOf(dialect) })).status).toBeLessThan(500)
    expect(decider.stderr).toBe('')
  })

  test('with a token only requests that have it are decided', async () => {
    const token = 'a-token-of-the-test'
    const decider = await serving(gateway(dialect, THREE), { SLUICE_TOKEN: token })
    const shown: Pairs[] = [
      [],
      [['X-Sluice-Token', 'another-token-here']],
      [
        ['X-Sluice-Token', token],
        ['X-Sluice-Token', token],
      ],
    ]
    for (const more of shown)
      expect((await ask(decider, { headers: [...fieldsOf(dialect), ...more] })).status).toBe(400)
    expect((await ask(decider, { headers: [...fieldsOf(dialect), ['X-Sluice-Token', token]] })).status).toBe(204)
    expect(decider.stderr).not.toContain(token)
  })
})

describe('requests of Traefik, by its documentation', () => {
  // forwardAuth: X-Forwarded-Method, -Proto, -Host, -Uri and -For beside the headers of the client.
  const sent = (client: string, more: Pairs = []): Pairs => [
    ...fieldsOf('forward-auth', 'POST', '/login?next=/', 'shop.example', client),
    ['X-Forwarded-Proto', 'https'],
    ['X-Forwarded-Port', '443'],
    ['X-Forwarded-Server', 'traefik-0'],
    ['X-Real-Ip', client],
    ['Accept', 'text/html'],
    ['User-Agent', 'a browser'],
    ...more,
  ]

  test('a request of Traefik is decided, and the response is for the client', async () => {
    const decider = await serving(gateway('forward-auth', THREE))
    for (let n = 0; n < 3; n++) expect((await ask(decider, { headers: sent('192.0.2.7') })).status).toBe(204)
    const { status, headers } = await ask(decider, { headers: sent('192.0.2.7', [['X-Real-Ip', '192.0.2.99']]) })
    expect([status, headers['retry-after']]).toEqual([429, expect.stringMatching(/^\d+$/)])
    expect((await ask(decider, { headers: sent('192.0.2.8') })).status).toBe(204)
  })
})

test("requests from one private address cause a warning in the decider's own words", async () => {
  const warnings: string[] = []
  const listener = ({ message }: Error) => message.includes('a private address') && warnings.push(message)
  process.on('warning', listener)
  try {
    const behind = await serving(gateway('nginx', THREE))
    for (let n = 0; n < 1000; n++) await ask(behind, { headers: fieldsOf('nginx', 'GET', '/', 'a', '10.0.0.7') })
    const callers = await serving(json(THREE))
    const requests = Array.from({ length: 100 }, () => ({ path: '/', ip: '10.0.0.8' }))
    for (let n = 0; n < 10; n++) await decide(callers, { requests })
    await until('both have warned', () => warnings.length >= 2)
    expect(warnings.sort()).toEqual([
      expect.stringMatching(
        /came from 10\.0\.0\.7, .* if that is a proxy, name it in the gateway and in --trust-proxy, /,
      ),
      expect.stringMatching(
        /came from 10\.0\.0\.8, .* if that is a proxy, let callers send the client's own address as ip, /,
      ),
    ])
  } finally {
    process.removeListener('warning', listener)
  }
})
