import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { ask, type Decider, decide, endWithTests, gateway, json, raw, serving, THREE } from './support.js'

endWithTests()

const ANN = { path: '/', ip: '192.0.2.7' }
const HEAD = 'POST /v1/decide HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
const BODY = JSON.stringify(ANN)

const remainingOf = async (decider: Decider) => (await decide(decider, { ...ANN, cost: 0 })).json.limits[0].remaining

/** The statuses of all responses received over a connection. */
const statusesIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))

test.each<[string, string]>([
  ['two lengths', `${HEAD}Content-Length: ${BODY.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['two lengths, the other way round', `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`],
  ['two Content-Length', `${HEAD}Content-Length: 0\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`],
  ['a list as Content-Length', `${HEAD}Content-Length: 0, ${BODY.length}\r\n\r\n${BODY}`],
  ['a Content-Length with a sign', `${HEAD}Content-Length: +${BODY.length}\r\n\r\n${BODY}`],
  ['an encoding that is not chunked', `${HEAD}Transfer-Encoding: xchunked\r\n\r\n${BODY}`],
  ['chunked that is not last', `${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
  ['a space before the colon', `${HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
  ['a folded header', `${HEAD}X: a\r\n Transfer-Encoding: chunked\r\nContent-Length : 1\r\n\r\nx`],
  ['a bare line feed', `POST /v1/decide HTTP/1.1\nHost: a\nContent-Length: 0\n\n`],
  ['a chunk of a wrong size', `${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n${BODY}\r\n0\r\n\r\n`],
  ['a method in lower case', 'post /v1/decide HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['no HTTP', 'hello\r\n\r\n'],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
])('after %s the connection closes, and the following bytes are no request', async (_, first) => {
  const decider = await serving(json(THREE))
  const smuggled = `${HEAD}Content-Length: ${BODY.length}\r\n\r\n${BODY}`
  const responses = await raw(decider, first, smuggled)
  expect(statusesIn(responses).filter((status) => status === 200)).toEqual([])
  expect(statusesIn(responses).length).toBeLessThanOrEqual(1)
  expect(await remainingOf(decider)).toBe(3)
})

test('a body passed by a gateway is not read as the next request', async () => {
  const decider = await serving(gateway('nginx', THREE))
  const fields = 'X-Original-Method: GET\r\nX-Original-URI: /\r\nX-Original-Host: a\r\nX-Original-For: 192.0.2.7\r\n'
  const smuggled = `GET /v1/decide HTTP/1.1\r\nHost: a\r\n${fields.replace('2.7', '2.8')}\r\n`
  for (const length of [`Content-Length: ${smuggled.length}`, 'Transfer-Encoding: chunked']) {
    const responses = await raw(decider, `GET /v1/decide HTTP/1.1\r\nHost: a\r\n${fields}${length}\r\n\r\n${smuggled}`)
    expect(statusesIn(responses)).toEqual([400])
  }
})

test('malformed bytes after a request do not change its response', async () => {
  const decider = await serving(json(THREE))
  const question = `${HEAD}Content-Length: ${BODY.length}\r\n\r\n${BODY}`
  const statuses = statusesIn(await raw(decider, `${question}nonsense\r\n\r\n`))
  expect([[], [200], [200, 400]]).toContainEqual(statuses)
})

test('too many headers are refused, and none of them is left out', async () => {
  const decider = await serving(gateway('nginx', THREE))
  const fields: [string, string][] = [
    ['X-Original-Method', 'GET'],
    ['X-Original-URI', '/'],
    ['X-Original-Host', 'a'],
    ['X-Original-For', '198.51.100.1'],
  ]
  const filler = (count: number): [string, string][] => Array.from({ length: count }, (_, n) => [`a${n}`, ''])
  // The gateway adds its line at the end.
  const last: [string, string] = ['X-Original-For', '192.0.2.7']
  expect((await ask(decider, { headers: [...fields, ...filler(400), last] })).headers.ratelimit).toContain('r=2')
  for (const count of [600, 2000, 2500]) {
    const { status, headers } = await ask(decider, { headers: [...fields, ...filler(count), last] })
    // nginx understands no other status for a refusal.
    expect([count, status, headers['x-sluice-status']]).toEqual([count, 403, '431'])
    expect(headers.connection).toBe('close')
  }
  // The gateway's line was the one that counted.
  expect((await ask(decider, { headers: [...fields.slice(0, 3), last] })).headers.ratelimit).toContain('r=1')
})

test('headers of more than 64 KiB are refused', async () => {
  const decider = await serving(json(THREE))
  const response = await raw(decider, `${HEAD}X: ${'x'.repeat(70_000)}\r\n\r\n`)
  expect(statusesIn(response)).toEqual([431])
  expect(response).toMatch(/expected fewer bytes of headers\n$/)
})

test('64 addresses of a proxy list are read, and more trusted ones are refused', async () => {
  const decider = await serving(gateway('nginx', THREE))
  const client = (list: string): [string, string][] => [
    ['X-Original-Method', 'GET'],
    ['X-Original-URI', '/'],
    ['X-Original-Host', 'a'],
    ['X-Original-For', list],
  ]
  const proxies = (count: number) => Array.from({ length: count }, () => '127.0.0.1')
  expect((await ask(decider, { headers: client(['192.0.2.7', ...proxies(63)].join()) })).status).toBe(204)
  const { status, json: problem } = await ask(decider, { headers: client(['192.0.2.7', ...proxies(64)].join()) })
  expect([status, problem.detail]).toEqual([400, expect.stringContaining('behind 63 proxies at most')])
  // Addresses before the last untrusted one are the client's own claims.
  expect((await ask(decider, { headers: client([...proxies(1000), '192.0.2.7'].join()) })).headers.ratelimit).toContain(
    'r=1',
  )
})

test.each([
  [
    'headers',
    'at most 500 names',
    { headers: Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`a${n}`, ''])) },
  ],
  ['a path', 'at most 65536 characters', { path: `/${'x'.repeat(65_536)}` }],
  [
    'a path and a header',
    'at most 65536 characters',
    { path: `/${'x'.repeat(40_000)}`, headers: { a: 'x'.repeat(30_000) } },
  ],
])('more %s in a request than a gateway could send are refused, in a batch as well', async (_, detail, request) => {
  const decider = await serving(json(THREE))
  for (const body of [{ ...ANN, ...request }, { requests: [ANN, { ...ANN, ...request }] }]) {
    const response = await decide(decider, body)
    expect([response.status, response.json.detail]).toEqual([400, expect.stringContaining(detail)])
  }
  expect(await remainingOf(decider)).toBe(3)
})

test('an unreadable request gets a response, even if more of it arrives', async () => {
  const decider = await serving(json(THREE))
  for (let n = 0; n < 5; n++) {
    const response = await raw(decider, `GET / HTTP/1.1\r\nA: \x01\r\n`, ...Array<string>(40).fill('x'.repeat(65_536)))
    expect(statusesIn(response)).toEqual([400])
  }
})

test.each([
  ['announced', `Content-Length: 262145\r\n\r\n`],
  [
    'not announced',
    `Transfer-Encoding: chunked\r\n\r\n${'10000\r\n'}${' '.repeat(65_536)}\r\n`.concat(
      `10000\r\n${' '.repeat(65_536)}\r\n`.repeat(4),
    ),
  ],
])('a body that is too large is refused before it is read: %s', async (_, rest) => {
  const decider = await serving(json(THREE))
  const response = await raw(decider, `${HEAD}${rest}`)
  expect(statusesIn(response)).toEqual([413])
})

test('a body of the maximum size is read', async () => {
  const decider = await serving(json(THREE))
  expect((await decide(decider, `${BODY}${' '.repeat(262_144 - BODY.length)}`)).json.allowed).toBe(true)
  expect((await decide(decider, `${BODY}${' '.repeat(262_145 - BODY.length)}`)).status).toBe(413)
})

test('clients that send headers or a body slowly are disconnected, and others are served meanwhile', async () => {
  const decider = await serving(json(THREE))
  const slow = [
    raw(decider, 'POST /v1/decide HTTP/1.1\r\n'),
    raw(decider, `${HEAD}Content-Length: 100\r\n\r\n{`),
    raw(decider, `${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`),
  ]
  expect((await decide(decider, ANN)).json.allowed).toBe(true)
  for (const response of await Promise.all(slow)) {
    expect(statusesIn(response)).toEqual(response === '' ? [] : [408])
  }
  expect(await remainingOf(decider)).toBe(2)
})

test('connections beyond --max-connections are closed, and a closed one makes room', async () => {
  const decider = await serving(json(THREE, '--max-connections', '2'))
  const open: Socket[] = []
  for (let n = 0; n < 2; n++) {
    const socket = connect(decider.port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    open.push(socket)
  }
  // The decider may not have accepted the second one yet.
  await until('a third connection is closed', async () => (await raw(decider, '').catch(() => 'x')) === '')
  for (const socket of open) socket.destroy()
  await until('there is room', async () => (await decide(decider, ANN)).json.allowed)
})
