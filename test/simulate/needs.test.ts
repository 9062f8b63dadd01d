import { expect, test } from 'vitest'
import { sluice } from '../cli/support.js'
import { filesOf, line, policyOf, simulated } from './support.js'

const LIMIT = { limit: 2, window: '1m' }
const LOG = [0, 1, 2].map((second) => line(second, '192.0.2.7')).join('')

async function failed(document: object, args: readonly string[] = [], log = LOG): Promise<string> {
  const files = filesOf({ 'access.log': log, 'policies.json': JSON.stringify(document) })
  const { code, stdout, stderr } = await sluice([
    'simulate',
    files['access.log'],
    '--document',
    files['policies.json'],
    ...args,
  ])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  return stderr
}

test.each([
  ['the host', { match: { hosts: ['api.example.com'] } }, ['--assume', 'host=api.example.com']],
  ['the header x-api-key', { key: 'header:x-api-key' }, ['--assume', 'header:x-api-key=k']],
  ['the cookie id', { key: 'cookie:id' }, ['--assume', 'header:cookie=id=7']],
  ['the route', { key: 'route' }, ['--assume', 'route=/users/:id']],
  ['the user', { key: 'user' }, ['--assume', 'user=ann']],
  ['the duration of requests', { limits: [{ algorithm: 'concurrency', limit: 2 }] }, ['--assume', 'duration=3s']],
])('a policy that needs %s names it where the log lacks it, unless it is assumed', async (field, policy, assumed) => {
  const document = policyOf(LIMIT, policy)
  expect(await failed(document)).toContain(`sluice: policy "api" needs ${field}, which the log lacks: `)
  const { report } = await simulated(LOG, document, assumed)
  expect(report.requests).toMatchObject({ total: 3, refused: { min: 1, max: 1 } })
})

test.each([
  ['the path', { match: { paths: ['/login'] } }],
  ['the method', { match: { methods: ['POST'] } }],
])('a policy that matches %s names it where the log lacks it', async (field, policy) => {
  const log = [0, 1, 2].map((i) => `${JSON.stringify({ at: 1772323200 + i, ip: '192.0.2.7' })}\n`).join('')
  const format = ['--format', '{"time": ".at", "ip": ".ip"}']
  expect(await failed(policyOf(LIMIT, policy), format, log)).toContain(
    `sluice: policy "api" needs ${field}, which the log lacks: --format with the field`,
  )
})

test('a W3C log without paths lacks them, too', async () => {
  const log = '#Fields: date time c-ip cs-method sc-status\n2026-03-01 00:00:01 192.0.2.7 GET 200\n'
  expect(await failed(policyOf(LIMIT, { match: { paths: ['/'] } }), [], log)).toContain('needs the path')
})

test('keys of the application come from fields of the log', async () => {
  const log = ['ann', 'ann', 'bob', 'ann']
    .map((id, i) =>
      JSON.stringify({ at: 1772323200 + i, ip: '192.0.2.7', path: '/', status: 200, user: { id, team: 't' } }),
    )
    .join('\n')
  const format = ['--format', JSON.stringify({ time: '.at', ip: '.ip', target: '.path', status: '.status' })]
  const byUser = await simulated(`${log}\n`, policyOf(LIMIT, { key: 'user' }), [...format, '--field', 'user=.user.id'])
  expect(byUser.report.refused).toMatchObject([{ identity: 'user=ann', requests: 3, refused: 1 }])
  const byTeam = await simulated(`${log}\n`, policyOf(LIMIT, { key: 'team' }), [
    ...format,
    '--field',
    'team=.user.team',
  ])
  expect(byTeam.report.refused).toMatchObject([{ identity: 'team=t', requests: 4, refused: 2 }])
  expect(await failed(policyOf(LIMIT, { key: 'team' }))).toContain(
    '--field NAME=FIELD gives keys, --resolvers FILE any function',
  )
})

test('functions of the application come from a module, and get the record', async () => {
  const { 'resolvers.mjs': resolvers } = filesOf({
    'resolvers.mjs': `export const tiers = { plan: ({ target }) => target.startsWith('/paid') ? 'paid' : 'free' }
export const costs = { size: ({ bytes }) => bytes }`,
  })
  const tiered = {
    version: 1,
    policies: { api: { tier: 'plan', tiers: { free: [LIMIT], paid: [{ limit: 9, window: '1m' }] } } },
  }
  const log = ['/', '/paid', '/', '/paid', '/paid', '/'].map((target, i) => line(i, '192.0.2.7', target)).join('')
  const { report } = await simulated(log, tiered, ['--resolvers', resolvers])
  expect(report.requests.refused).toEqual({ min: 1, max: 1 })
  // Each response has 12 bytes.
  const priced = await simulated(log, policyOf({ limit: 30, window: '1m' }, { cost: 'size' }), [
    '--resolvers',
    resolvers,
  ])
  expect(priced.report.requests.refused).toEqual({ min: 4, max: 4 })
})

test('the client behind a proxy is read from X-Forwarded-For of trusted ones alone, or from a field', async () => {
  const format = ['--format', '$remote_addr [$time_local] "$request" $status "$http_x_forwarded_for" $client']
  const log = Array.from({ length: 100 }, (_, i) => Math.floor(i / 2))
    .map(
      (second, i) =>
        `10.0.0.1 [01/Mar/2026:00:00:${10 + second} +0000] "GET / HTTP/1.1" 200 "203.0.113.${i % 2}" 198.51.100.7\n`,
    )
    .join('')
  const blind = await simulated(log, policyOf(LIMIT), format)
  expect(blind.report.clients.seen).toBe(1)
  expect(blind.report.caveats.join()).toContain('Private addresses have 100 % of the requests: if they are proxies')
  const trusting = await simulated(log, policyOf({ limit: 50, window: '1m' }), [
    ...format,
    '--trust-proxy',
    '10.0.0.0/8',
  ])
  expect(trusting.report.clients).toEqual({ seen: 2, refused: 0, refusedBounds: { min: 0, max: 0 } })
  const other = await simulated(log, policyOf(LIMIT), [...format, '--trust-proxy', '10.9.0.0/16'])
  expect(other.report.clients.seen).toBe(1)
  const named = await simulated(log, policyOf({ limit: 99, window: '1m' }), [...format, '--client', 'client'])
  expect(named.report.refused).toMatchObject([{ identity: 'ip=198.51.100.7', refused: 1 }])
})

test('one address with most of the traffic is named', async () => {
  const log = Array.from({ length: 100 }, (_, i) => line(i, i % 4 === 0 ? '192.0.2.7' : '203.0.113.9')).join('')
  const { report } = await simulated(log, policyOf(LIMIT))
  expect(report.caveats.join()).toContain('203.0.113.9 has 75 % of the requests: if it is a proxy')
})

test.each([
  [['--assume', 'hots=x'], '--assume: expected host, route, user, status, bytes, duration or header:NAME, got "hots"'],
  [['--assume', 'duration=soon'], '--assume: duration: expected'],
  [['--assume', 'duration=367d'], '--assume: duration: expected at most 366 days, got "367d"'],
  [['--field', 'user'], '--field: expected NAME=…, got "user"'],
  [['--trust-proxy', '0.0.0.0/0'], '--trust-proxy: expected no 0.0.0.0/0'],
  [['--good', 'nowhere.txt'], '--good: cannot read "nowhere.txt" (ENOENT)'],
  [['--good', 'team=t'], '--good: expected a file, an address, a network, user=NAME or .FIELD=VALUE, got "team=t"'],
  [['--resolvers', 'nowhere.js'], '--resolvers: cannot load "nowhere.js"'],
  [['--identities', 'all'], '--identities: expected plain or pseudonyms, got "all"'],
])('the command line %j is answered with a sentence', async (args, message) => {
  expect(await failed(policyOf(LIMIT), args)).toContain(`sluice: ${message}`)
})

test('a wrong document is answered with its mistakes, and a missing one with its name', async () => {
  expect(await failed(policyOf({ limit: 'many', window: '1m' }))).toMatch(/policies\.json:1:\d+: policies\.api\.limits/)
  const { 'access.log': log } = filesOf({ 'access.log': LOG })
  expect((await sluice(['simulate', log, '--document', 'nowhere.yaml'])).stderr).toContain('cannot read "nowhere.yaml"')
})

test('requests without an address are counted as mistakes, and end nothing', async () => {
  const log = [line(0, '192.0.2.7'), line(1, '-'), line(2, 'unix:'), line(3, '192.0.2.7')].join('')
  const { report } = await simulated(log, policyOf({ limit: 5, window: '1m' }), ['--lenient'])
  expect(report.requests).toMatchObject({ total: 4, admitted: { min: 2 }, refused: { min: 2 } })
  expect(report.caveats).toContain('2 requests have no key, or a wrong one, and would get status 400.')
})
