import { createHash } from 'node:crypto'
import { linkSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { sluice } from '../cli/support.js'
import { filesOf, line, policyOf, simulated } from './support.js'

const PER_MINUTE = policyOf({ limit: 2, window: '1m' })
const LOG = [0, 1, 2].map((second) => line(second, '192.0.2.7')).join('')

test('numbers behind the bytes of a common log leave these as they are', async () => {
  const log = [0, 1]
    .map((s) => `192.0.2.7 - - [01/Mar/2026:00:00:0${s} +0000] "GET / HTTP/1.1" 200 700 1534 0.2\n`)
    .join('')
  const document = policyOf({ algorithm: 'fixedWindow', limit: 1000, window: '1m', unit: 'response-bytes' })
  const { report } = await simulated(log, document, ['--curve'])
  expect(report.log).toMatchObject({ formats: ['common'], unread: { count: 0 } })
  expect(report.policies[0]?.limits[0]?.rank).toEqual([{ rank: 1, units: 1400 }])
})

test('bytes that are no number are not understood', async () => {
  const files = filesOf({
    'access.log': LOG.repeat(2) + LOG.replaceAll(' 12 ', ' 0x12 '),
    'policies.json': JSON.stringify(PER_MINUTE),
  })
  const { code, stderr } = await sluice(['simulate', files['access.log'], '--document', files['policies.json']])
  expect([code, stderr]).toEqual([2, expect.stringContaining('3 of 9 lines are not combined')])
})

test('connections without a request are no requests, and the report counts them', async () => {
  const such = ['-', '', '\\x16\\x03\\x01\\x02\\x00 \\x01', 'SSH-2.0-Go', 't3 12.1.2', '\\x00 /']
  const lines = such.map((text) => LOG.split('\n')[2]?.replace('GET / HTTP/1.1', text).replace(' 200 ', ' 400 '))
  const { report } = await simulated(`${LOG}${lines.join('\n')}\n`, PER_MINUTE)
  expect(report.requests.total).toBe(3)
  expect(report.caveats).toContain('6 lines are no requests: left out.')
})

test('one address that has all requests may be a proxy', async () => {
  const log = Array.from({ length: 200 }, (_, i) => line(i, '198.51.100.1')).join('')
  const { report } = await simulated(log, PER_MINUTE)
  expect(report.caveats[0]).toMatch(
    /^198\.51\.100\.1 has 100 % of the requests: if it is a proxy, --trust-proxy NETWORK/,
  )
})

// https://caddyserver.com/docs/caddyfile/options#trusted-proxies: client_ip, since 2.7.
test('the client of a Caddy log is the one that Caddy takes from its trusted proxies', async () => {
  const log = [1, 2].map(
    (client) =>
      `{"level":"info","ts":177232320${client}.25,"request":{"remote_ip":"10.0.0.1","client_ip":"192.0.2.${client}","method":"GET","host":"a.test","uri":"/"},"duration":0.001,"size":12,"status":200}\n`,
  )
  expect((await simulated(log.join(''), PER_MINUTE)).report.clients.seen).toBe(2)
})

test('a damaged gzip is read up to the damage, however far in', async () => {
  // Lines that compress little: some 900 kB.
  const lines = Array.from({ length: 24_000 }, (_, n) =>
    line(
      n % 86_400,
      `192.0.${n % 256}.${(n * 7) % 256}`,
      `/${createHash('sha256').update(String(n)).digest('base64url')}`,
    ),
  )
  const bytes = Buffer.concat([gzipSync(lines.join('')), Buffer.from('garbage'.repeat(100_000))])
  expect(bytes.length).toBeGreaterThan(1_500_000)
  const files = filesOf({ 'access.log.gz': '', 'p.json': JSON.stringify(policyOf({ limit: 1, window: '1m' })) })
  writeFileSync(files['access.log.gz'], bytes)
  const { code, stdout, stderr } = await sluice([
    'simulate',
    files['access.log.gz'],
    '--document',
    files['p.json'],
    '--json',
  ])
  expect([code, stderr]).toEqual([0, ''])
  const { log, caveats } = JSON.parse(stdout)
  expect(caveats.join()).toContain('has damaged gzip data')
  // At most the last lines are lost.
  expect(log.lines).toBeGreaterThan(23_990)
})

test('a small gzip with garbage behind it is read, and the report says where it ends', async () => {
  const files = filesOf({ 'access.log.gz': '', 'policies.json': JSON.stringify(PER_MINUTE) })
  writeFileSync(files['access.log.gz'], Buffer.concat([gzipSync(LOG), Buffer.from('garbage')]))
  const { code, stdout } = await sluice(['simulate', files['access.log.gz'], '--document', files['policies.json']])
  expect(code).toBe(0)
  expect(stdout).toContain('3 requests of 1 client')
  expect(stdout).toContain('has damaged gzip data (Z_DATA_ERROR): line 3 is the last that was read')
})

test('zeros at the start of a log, as copytruncate leaves them, are skipped', async () => {
  for (const zeros of [1, 5000, 600_000]) {
    expect((await simulated('\0'.repeat(zeros) + LOG, PER_MINUTE)).report).toMatchObject({
      log: { unread: { count: 0 } },
      requests: { total: 3 },
    })
  }
})

test('a file that is named twice is an error', async () => {
  const files = filesOf({ 'access.log': LOG, 'policies.json': JSON.stringify(PER_MINUTE) })
  const log = files['access.log']
  const played = (...logs: string[]) => sluice(['simulate', ...logs, '--document', files['policies.json']])
  expect(await played(log, log)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('access.log" is named twice'),
  })
  linkSync(log, `${log}.1`)
  expect((await played(log, `${log}.1`)).stderr).toContain('access.log.1" are one file')
})

test('paths of a page that is shared name no person, and open no door', async () => {
  const { unnamedPath } = await import('@sluice/core/internal')
  expect(
    [
      '/invite/ABCD-EFGH',
      '/ABCD-EFGH/x',
      '/magic/lamp',
      '/users/ann/orders',
      '/users/me',
      '/~ann/',
      '/profile/Ann%20Lee',
      '/reset-password/word',
      '/products/chair',
    ].map(unnamedPath),
  ).toEqual([
    '/invite/:token',
    '/:token/x',
    '/magic/:token',
    '/users/:name/orders',
    '/users/me',
    '/:name/',
    '/profile/:name',
    '/reset-password/:token',
    '/products/chair',
  ])
})

// https://httpd.apache.org/docs/2.4/mod/mod_log_config.html: %{X-Forwarded-For}i in place of %h.
test('the first address of a list of proxies is no virtual host, whose client would be a proxy', async () => {
  const log = LOG.replaceAll('192.0.2.7 -', '192.0.2.7, 10.0.0.1 -')
  await expect(simulated(log, PER_MINUTE)).rejects.toThrow(
    /100 % of the requests have none in the field remote_addr, such as "192\.0\.2\.7,"/,
  )
  const format = ['--format', '%{X-Forwarded-For}i %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"']
  await expect(simulated(log, PER_MINUTE, format)).rejects.toThrow("needs the client's address, which the log lacks")
  const { report } = await simulated(log, PER_MINUTE, [...format, '--trust-proxy', '10.0.0.0/8'])
  expect(report.refused).toMatchObject([{ identity: 'ip=192.0.2.7' }])
})

test('the fields that are proposed for JSON of nginx read its times and whole requests', async () => {
  const log = [0, 1, 2]
    .map(
      (second) =>
        `{"msec": "177232320${second}.250", "remote_addr": "192.0.2.7", "request": "POST /login?next=/ HTTP/1.1", "status": "200"}\n`,
    )
    .join('')
  const login = policyOf({ limit: 2, window: '1m' }, { match: { paths: ['/login'], methods: ['POST'] } })
  const error = await simulated(log, login).catch(({ message }: Error) => message)
  const [, fields = ''] = /its fields look like --format '(\{.*?\})'/.exec(String(error)) ?? []
  const { report } = await simulated(log, login, ['--format', fields])
  expect(report).toMatchObject({ log: { resolutionMs: 1 }, requests: { total: 3, refused: { min: 1, max: 1 } } })
})
