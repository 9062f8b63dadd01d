import { createHmac } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { propose } from '@sluice/simulate'
import { expect, test } from 'vitest'
import { sluice } from '../cli/support.js'
import { filesOf, line } from './support.js'

/** Requests of clients in 192.0.2.0/24 over two minutes: client n comes n times, all in one second. */
function crowd(clients: number): string {
  return Array.from({ length: clients }, (_, i) => [Math.floor((120 * i) / clients), i + 1] as const)
    .flatMap(([second, n]) => Array.from({ length: n }, () => line(second, `192.0.2.${n}`, `/items/${n}`)))
    .concat(line(121, '192.0.2.1'))
    .join('')
}

/** More than a thousand clients that come once each, over two minutes. */
const QUIET = Array.from({ length: 1200 }, (_, i) =>
  line(Math.floor(i / 10), `10${i % 3}.1.${Math.floor(i / 200)}.${i % 200}`),
).join('')

test('the limit is the most that good clients need, to the unit, and the document is right and in report mode', async () => {
  const files = filesOf({ 'access.log': crowd(40) })
  const file = join(dirname(files['access.log']), 'proposal.yaml')
  const good = ['--good', '192.0.2.23', '--good', '192.0.2.7']
  const { code, stdout, stderr } = await sluice(['simulate', files['access.log'], ...good, '--write', file])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  // Each of the clients 24 to 40 is refused what it has beyond 23.
  expect(stdout).toMatch(
    /^Limit each client to 23 requests per minute: enforced, that refuses 153 of 821 requests \(19 %\), of 17 of 40 clients\.\n/,
  )
  expect(stdout).toContain(
    'The limits are the most that 2 good clients of the log need, those that --good names. They refuse none of these, and leave the busiest of them no room.',
  )
  expect(stdout).toMatch(/^ip=192\.0\.2\.40 +40 in 1m, limit 23 +1\.7× +17 of 40 +\/items\/:number/m)
  expect(stdout).toMatch(/^\* ip=192\.0\.2\.23 +23 in 1m, limit 23 +100 %/m)
  const yaml = readFileSync(file, 'utf8')
  expect(stdout.endsWith(yaml)).toBe(true)
  expect(yaml).toContain('    enforce: { mode: report }')
  expect(yaml).toContain('      - { limit: 23, window: 1m } # 17 in the log above it')
  expect((await sluice(['validate', file])).code).toBe(0)
  const again = await sluice(['simulate', files['access.log'], '--document', file])
  expect(again.stdout).toContain('153 (19 %) refused, of 17 clients')
  expect((await sluice(['simulate', files['access.log'], ...good, '--write', file])).stderr).toBe(
    `sluice: cannot write ${JSON.stringify(file)}: it exists; name another file\n`,
  )
})

test('clients of one network that stand out together have a limit of their network', async () => {
  const spread = Array.from({ length: 240 }, (_, i) => line(Math.floor(i / 2.4), `198.51.100.${i}`, '/login'))
  const log = [...QUIET.split(/(?<=\n)/), ...spread].sort((a, b) =>
    a.slice(a.indexOf('[')) < b.slice(b.indexOf('[')) ? -1 : 1,
  )
  const files = filesOf({ 'access.log': log.join('') })
  const { stdout } = await sluice(['simulate', files['access.log'], '--good', '100.0.0.0/6'])
  expect(stdout).toMatch(/^ip=198\.51\.100\.0\/24 \(240 clients\) .* of 240 +\/login/m)
  expect(stdout).toContain('deny: { ip: [198.51.100.0/24] }')
  expect(stdout).toContain('    key: { ip: { ipv4Prefix: 24, ipv6Prefix: 48 } }')
})

test('a proposal from a recording names clients and networks by their HMACs, and shows no address', async () => {
  const hash = (text: string) => createHmac('sha256', 'a secret').update(text).digest('base64url').slice(0, 16)
  const record = (time: number, network: string, host: number, path: string) => {
    const ip = [hash(`ip:${network}.0/24`), hash(`ip:${network}.${host}`)]
    return { time, duration: 1, method: 'GET', host: 'api.test', path, status: 200, outcome: 'admitted', ip }
  }
  const start = Date.UTC(2026, 8, 21)
  const ordinary = Array.from({ length: 300 }, (_, i) => record(start + 400 * i, `10.1.${i % 100}`, i, '/items/1'))
  const spread = Array.from({ length: 50 }, (_, i) => record(start + 500 + 2000 * i, '198.51.100', i, '/login'))
  const head = `#sluice-recording ${JSON.stringify({ version: 1, secret: hash('sluice recording'), share: 1 })}`
  const records = [...ordinary, ...spread].sort((a, b) => a.time - b.time).map((each) => JSON.stringify(each))
  const files = filesOf({
    'requests.log': `${[head, ...records].join('\n')}\n`,
    'good.txt': ordinary.map(({ ip }) => `.ip=${ip[1]}`).join('\n'),
  })
  const { code, stdout } = await sluice(['simulate', files['requests.log'], '--good', files['good.txt']])
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('of up to 50 of 350 clients in 1 network above one'),
  })
  expect(stdout).toContain(`\nip=~${hash('ip:198.51.100.0/24')} (50 clients)  30 in 1m`)
  expect(stdout).not.toMatch(/deny:|ip=\d/)
})

test('a group of paths has a limit of its own, if someone stands out there alone', async () => {
  const ordinary = Array.from({ length: 50 }, (_, n) =>
    Array.from({ length: 20 }, (_, i) => line(n + i, `192.0.2.${n}`, `/api/v1/items/${i}`)).concat(
      line(n + 20, `192.0.2.${n}`, '/api/v1/login'),
    ),
  ).flat()
  const guesser = Array.from({ length: 15 }, (_, i) => line(30 + i, '198.51.100.7', '/api/v1/login'))
  const log = [...ordinary, ...guesser].sort((a, b) => (a.slice(a.indexOf('[')) < b.slice(b.indexOf('[')) ? -1 : 1))
  const { proposal, refused } = await propose({
    logs: [filesOf({ 'access.log': log.join('') })['access.log']],
    good: ['192.0.2.0/24'],
    identities: 'plain',
  })
  expect(proposal.limits.filter(({ paths }) => paths !== undefined)).toMatchObject([
    { paths: '/api/v1/login/**', counts: 'clients', windowMs: 60_000, limit: 1, refused: 1 },
  ])
  expect(refused).toMatchObject([{ identity: 'ip=198.51.100.7', refused: 14 }])
})

test.each([
  ['', 'expected lines, got none'],
  [
    line(0, '192.0.2.7') + line(200, '192.0.2.7'),
    'the log has one client, 192.0.2.7, and none to compare it with. If it is a proxy, --trust-proxy NETWORK or --client FIELD names the client',
  ],
  [line(0, '192.0.2.7') + line(20, '192.0.2.8'), 'the log lasts 20s for 2 requests, and a limit needs at least 1m'],
  [
    line(0, '192.0.2.7') + line(200, '192.0.2.8'),
    'the log has 2 clients, and a guess needs 1,000: take a longer log, or name clients that must not be refused by --good',
  ],
  [
    [0, 50, 100].flatMap((at) => [line(at, '10.0.0.1'), line(at, '10.0.0.2'), line(at, '192.0.2.1')]).join(''),
    '2 private addresses have 67 % of the requests. If they are proxies,',
  ],
])('a log that says too little is an error that says what is needed: %#', async (log, message) => {
  const { code, stdout, stderr } = await sluice(['simulate', filesOf({ 'access.log': log })['access.log']])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
})

test('a folder, standard input and absent good clients are errors', async () => {
  const file = filesOf({ 'access.log': crowd(3) })['access.log']
  const errorOf = async (...args: string[]) => (await sluice(['simulate', ...args])).stderr
  expect(await errorOf(dirname(file))).toContain('expected a file, got a directory')
  expect(await errorOf('-')).toContain('a proposal reads logs twice: expected files, got standard input')
  expect(await errorOf(file, '--good', '198.51.100.1')).toContain(
    'none of the good clients is in the log: "198.51.100.1"',
  )
  expect(await errorOf(file, '--curve')).toContain('--curve: expected --document FILE beside it')
  expect(await errorOf(file, '--write', 'x', '--document', 'y')).toContain('--write: expected no --document beside it')
})

test('lines that are appended while a log is read are left out of both readings', async () => {
  const file = filesOf({ 'access.log': crowd(40) })['access.log']
  let isAppended = false
  const { proposal, requests } = await propose({
    logs: [file],
    good: ['192.0.2.23'],
    onProgress() {
      if (!isAppended) appendFileSync(file, line(130, '192.0.2.1').repeat(500))
      isAppended = true
    },
  })
  expect(requests.total).toBe(821)
  expect(proposal.limits[0]).toMatchObject({ limit: 23, refused: 17 })
})

test('a proposal has pseudonyms in JSON, and names no client in the document', async () => {
  const file = filesOf({ 'access.log': crowd(40) })['access.log']
  const { stdout } = await sluice(['simulate', file, '--good', '192.0.2.23', '--json'])
  const { proposal, refused } = JSON.parse(stdout)
  expect(stdout).not.toContain('192.0.2.')
  expect(proposal.above).toContainEqual(expect.objectContaining({ identity: refused[0].identity, worst: 40 }))
})
