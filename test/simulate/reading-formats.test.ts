import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { FORMATS, formatOf } from '../../packages/simulate/src/formats/index.js'
import { openLogs } from '../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../packages/simulate/src/record.js'
import { LINES_OF_SERVERS } from './fixtures/lines-of-servers.js'

const TIMED = `log_format timed '$remote_addr $host [$time_iso8601] $msec $request_time "$request" $status $bytes_sent "$http_user_agent" '
  'up=$upstream_addr $upstream_response_time "$http_x_api_key"';`
const AS_JSON = `escape=json '{"at":"$msec","took":$request_time,"client":"$remote_addr","host":"$http_host","method":"$request_method",'
  '"uri":"$request_uri","status":$status,"sent":$bytes_sent,"user":"$remote_user","agent":"$http_user_agent","key":"$http_x_api_key"}'`
const PATHS = JSON.stringify({
  time: '.at',
  durationS: '.took',
  ip: '.client',
  host: '.host',
  method: '.method',
  target: '.uri',
  status: '.status',
  bytes: '.sent',
  user: '.user',
  agent: '.agent',
})

const pathOf = (name: string) => fileURLToPath(new URL(`fixtures/${name}.log`, import.meta.url))

async function readAll(name: string, format?: string): Promise<{ formats: readonly string[]; records: LogRecord[] }> {
  const logs = await openLogs([pathOf(name)], { format: format === undefined ? undefined : formatOf(format) })
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  expect(logs.counts).toMatchObject({ unread: 0, late: 0, caveats: [] })
  return { formats: logs.formats, records }
}

/** What a test looks at. */
function plain({ startMs, resolutionMs, durationMs, ip, method, target, status, bytes, user, agent, host }: LogRecord) {
  return { startMs, resolutionMs, durationMs, ip, method, target, status, bytes, user, agent, host }
}

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const HOSTILE = 'say "hi" \\ to <b>café</b>'
/** Address, method, target, user and agent of the ten requests that nginx and Apache got. */
const ASKED = [
  ['127.0.0.1', 'GET', '/', undefined, 'curl/8.9.1'],
  ['192.0.2.7', 'GET', '/search?q=caf%C3%A9&page=2', undefined, FIREFOX],
  ['2001:db8::7', 'POST', '/login', undefined, 'curl/7.88.1'],
  ['127.0.0.1', 'GET', '/private', 'ann', 'curl/7.88.1'],
  ['127.0.0.1', 'GET', '/missing', undefined, HOSTILE],
  ['127.0.0.1', 'HEAD', '/', undefined, undefined],
  ['127.0.0.1', 'GET', '/proxied', undefined, 'curl/7.88.1'],
  ['127.0.0.1', 'GET', '/a%20b/%22quoted%22', undefined, 'curl/7.88.1'],
  ['127.0.0.1', 'GET', '/old', undefined, undefined],
]

test.each([
  ['nginx-combined', 'combined', undefined],
  ['nginx-main', 'main', undefined],
  ['nginx-timed', 'log_format', TIMED],
  ['apache-combined', 'combined', undefined],
  ['apache-vhost-combined', 'vhost_combined', undefined],
  ['apache-common', 'common', undefined],
  ['apache-vhost-common', 'vhost_common', undefined],
])('the requests in %s.log are read as %s', async (name, format, given) => {
  const { formats, records } = await readAll(name, given)
  expect(formats).toEqual([format])
  const hasAgent = !format.endsWith('common')
  const hasUser = format !== 'log_format'
  expect(records.map(({ ip, method, target, user, agent }) => [ip, method, target, user, agent])).toEqual(
    ASKED.map(([ip, method, target, user, agent]) => [
      ip,
      method,
      target,
      hasUser ? user : undefined,
      hasAgent ? agent : undefined,
    ]),
  )
})

test('a date to the second is the start of a second, in the zone that it names', async () => {
  const { records } = await readAll('apache-combined')
  expect(plain(records[1] as LogRecord)).toEqual({
    startMs: Date.parse('2026-11-26T11:31:11Z'),
    resolutionMs: 1000,
    durationMs: undefined,
    ip: '192.0.2.7',
    method: 'GET',
    target: '/search?q=caf%C3%A9&page=2',
    status: 200,
    bytes: 206,
    user: undefined,
    agent: FIREFOX,
    host: undefined,
  })
  expect(records[1]?.header('referer')).toBe('http://example.test/start?q=1')
  expect(records[0]?.header('referer')).toBeUndefined()
  expect(records[0]?.header('x-api-key')).toBeUndefined()
})

test('a log_format with $msec and $request_time tells the start to the millisecond', async () => {
  const { records } = await readAll('nginx-timed', TIMED)
  const proxied = records[6] as LogRecord
  const line = readFileSync(pathOf('nginx-timed'), 'utf8').split('\n')[6] as string
  const [, , , msec = '', seconds = ''] = line.split(' ')
  expect(plain(proxied)).toMatchObject({
    startMs: Math.round(Number(msec) * 1000 - Number(seconds) * 1000),
    resolutionMs: 1,
    durationMs: Number(seconds) * 1000,
    host: 'example.test',
    status: 200,
  })
  expect(proxied.field('upstream_addr')).toBe('127.0.0.1:18082')
  expect(records[3]?.header('x-api-key')).toBe('k-1')
  expect(records[0]?.field('upstream_addr')).toBeUndefined()
})

test('a time is whole milliseconds, though its seconds have no exact binary form', () => {
  const parse = formatOf('$remote_addr $msec "$request"').parser()
  expect(parse('192.0.2.7 1094598332.363 "GET / HTTP/1.1"')).toMatchObject({ startMs: 1_094_598_332_363 })
})

test('lists of addresses in a log_format end where the list does', async () => {
  const parse = formatOf('$http_x_forwarded_for $upstream_addr $upstream_status $msec $request_time').parser()
  const record = parse(
    '192.0.2.1, 192.0.2.2 10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80 502, 502 : 200 1772323200.254 0.003',
  ) as LogRecord | undefined
  expect(record?.header('x-forwarded-for')).toBe('192.0.2.1, 192.0.2.2')
  expect(record?.field('upstream_addr')).toBe('10.0.0.1:80, 10.0.0.2:80 : 10.0.0.3:80')
  expect(record?.field('upstream_status')).toBe('502, 502 : 200')
  expect(record?.startMs).toBe(1772323200251)
})

test.each([
  ['log_format', AS_JSON],
  ['json', PATHS],
])('JSON that nginx writes is read as %s', async (name, format) => {
  const { formats, records } = await readAll('nginx-json', format)
  expect(formats).toEqual([name])
  expect(records.slice(0, 8).map(({ ip, method, target, agent }) => [ip, method, target, agent])).toEqual(
    ASKED.slice(0, 8).map(([ip, method, target, , agent]) => [ip, method, target, agent]),
  )
  expect(plain(records[6] as LogRecord)).toMatchObject({ resolutionMs: 1, host: 'example.test', status: 200 })
  expect(records[3]?.field(format === PATHS ? '.key' : 'http_x_api_key')).toBe('k-1')
})

test('JSON of Caddy is read', async () => {
  const { formats, records } = await readAll('caddy')
  expect(formats).toEqual(['caddy'])
  expect(records.every(({ resolutionMs }) => resolutionMs === 1)).toBe(true)
  const slow = records.find(({ user }) => user === 'ann') as LogRecord
  expect(plain(slow)).toMatchObject({
    startMs: 1795692686577,
    durationMs: expect.closeTo(3137.600608),
    ip: '127.0.0.1',
    method: 'GET',
    target: '/private',
    status: 404,
    bytes: 0,
    host: '127.0.0.1:18083',
    agent: 'curl/7.88.1',
  })
  expect(slow.header('x-api-key')).toBe('k-1')
  expect(slow.field('.request.headers.X-Api-Key')).toBe('k-1')
  // Caddy hides it.
  expect(slow.header('authorization')).toBeUndefined()
})

test('JSON of Traefik is read', async () => {
  const { formats, records } = await readAll('traefik')
  expect(formats).toEqual(['traefik'])
  expect(records.map(plain)).toEqual([
    {
      startMs: Date.parse('2024-12-29T11:42:47.503Z'),
      resolutionMs: 1,
      durationMs: expect.closeTo(8.184335),
      ip: '192.0.2.7',
      method: 'REPORT',
      target: '/dav.php/calendars/',
      status: 207,
      bytes: 287,
      user: undefined,
      agent: expect.stringContaining('CalendarAgent'),
      host: 'sub.example.com',
    },
  ])
  expect(records[0]?.field('.RouterName')).toBe('https-bk@docker')
})

test('JSON of pino-http is read, and what the application logs beside it is skipped', async () => {
  const { formats, records } = await readAll('pino-http')
  expect(formats).toEqual(['pino-http'])
  expect(records).toHaveLength(8)
  const login = records.find(({ target }) => target === '/login') as LogRecord
  expect(plain(login)).toEqual({
    startMs: 1795692650208,
    resolutionMs: 1,
    durationMs: 51,
    ip: '127.0.0.1',
    method: 'POST',
    target: '/login',
    status: 200,
    bytes: 6,
    user: undefined,
    agent: 'curl/7.88.1',
    host: '127.0.0.1:18084',
  })
  expect(login.header('x-forwarded-for')).toBe('203.0.113.9, 2001:db8::7')
  expect(login.field('.req.id')).toBe('3')
})

test('logs of an Application Load Balancer are read', async () => {
  const { formats, records } = await readAll('aws-alb')
  expect(formats).toEqual(['aws-alb'])
  expect(plain(records[0] as LogRecord)).toEqual({
    startMs: Date.parse('2018-07-02T22:22:48.364Z'),
    resolutionMs: 1,
    durationMs: expect.closeTo(11_822.641),
    ip: '192.168.131.39',
    method: 'GET',
    target: '/',
    status: 200,
    bytes: 366,
    user: undefined,
    agent: 'curl/7.46.0',
    host: 'www.example.com',
  })
  expect(records[1]?.field('target_group_arn')).toContain('targetgroup/my-targets')
})

test('logs of Nginx Proxy Manager are read, of hosts that are proxied and others', async () => {
  const proxied = await readAll('nginx-proxy-manager')
  expect(proxied.formats).toEqual(['nginx-proxy-manager'])
  expect(proxied.records.map(plain)).toEqual([
    {
      startMs: Date.parse('2023-01-27T10:22:32Z'),
      resolutionMs: 1000,
      durationMs: undefined,
      ip: '192.0.2.67',
      method: 'POST',
      target: '/apps/text/session/sync',
      status: 200,
      bytes: 251,
      user: undefined,
      agent: expect.stringContaining('Chrome/109.0.0.0'),
      host: 'data.example.com',
    },
  ])
  const other = await readAll('nginx-proxy-manager-standard')
  expect(other.formats).toEqual(['nginx-proxy-manager-standard'])
  expect(plain(other.records[0] as LogRecord)).toMatchObject({
    startMs: Date.parse('2022-05-22T04:35:23Z'),
    ip: '192.0.2.1',
    method: 'GET',
    target: '/',
    status: 307,
    bytes: 168,
    host: 'w.example.com',
  })
})

test('logs of CloudFront are read by their header', async () => {
  const { formats, records } = await readAll('cloudfront')
  expect(formats).toEqual(['cloudfront'])
  expect(records).toHaveLength(4)
  expect(plain(records[2] as LogRecord)).toEqual({
    startMs: Date.parse('2019-12-13T22:36:27Z') - 102,
    resolutionMs: 1000,
    durationMs: 102,
    ip: '192.0.2.200',
    method: 'GET',
    target: '/favicon.ico',
    status: 502,
    bytes: 900,
    user: undefined,
    agent:
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/78.0.3904.108 Safari/537.36',
    host: 'www.example.com',
  })
  expect(records[2]?.field('x-edge-detailed-result-type')).toBe('OriginDnsError')
  expect(records[2]?.header('referer')).toBe('http://www.example.com/')
})

test('each form has a fixture', async () => {
  const names = FORMATS.map(({ name }) => name)
  const files = ['nginx-combined', 'nginx-main', 'apache-vhost-combined', 'apache-common', 'apache-vhost-common']
  files.push('caddy', 'traefik', 'pino-http', 'aws-alb', 'cloudfront')
  files.push('nginx-proxy-manager', 'nginx-proxy-manager-standard')
  const recognised = await Promise.all(files.map(async (file) => (await openLogs([pathOf(file)])).formats[0]))
  // Others are recognised by lines from documentation, and by recordings of this package.
  for (const { lines, says, format } of LINES_OF_SERVERS) {
    if (typeof says === 'string' || format !== undefined) continue
    const text = Readable.from([Buffer.from(`${lines.join('\n')}\n`)])
    recognised.push((await openLogs(['-'], { stdin: text })).formats[0]?.split(' ')[0])
  }
  expect([...new Set(recognised), 'recording'].sort()).toEqual(names.sort())
})

test.each([
  ['comon', /did you mean common\?/],
  ['$remote_addr $request', /expected one of \$time_local, \$time_iso8601, \$msec/],
  ['$remote_addr$time_local', /expected a text between \$remote_addr and \$time_local/],
  ['[$time_local] $', /expected a variable's name behind \$/],
  ['{"time": "at"}', /"time": expected a path such as "\.request\.ip", got "\\"at\\""/],
  ['{"ip": ".client"}', /expected "time" \(the end of a request\) or "start"/],
  ['{"tyme": ".at"}', /expected time, start, .*got "tyme"/],
  ['{"time": ', /expected a JSON object/],
])('the format %s is rejected', (format, message) => {
  expect(() => formatOf(format)).toThrow(message)
})
