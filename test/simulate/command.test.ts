import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sluice } from '../cli/support.js'
import { filesOf, line, policyOf, simulated } from './support.js'

const PER_MINUTE = policyOf({ limit: 2, window: '1m' })
/** 192.0.2.7 comes four times within a minute, and 192.0.2.8 once. */
const LOG = [
  line(0, '192.0.2.7', '/users/42?token=secret'),
  line(1, '192.0.2.8'),
  line(2, '192.0.2.7', '/users/43', 404),
  line(10, '192.0.2.7', '/users/44', 404),
  line(20, '192.0.2.7', '/users/45'),
].join('')

test('the report says who would be refused, when first, how often, and on which paths', async () => {
  const { code, report } = await simulated(LOG, PER_MINUTE)
  expect(code).toBe(0)
  expect(report).toMatchObject({
    log: { lines: 5, formats: ['combined'], resolutionMs: 1000, firstMs: Date.UTC(2026, 2, 1), isPartial: false },
    requests: { total: 5, admitted: { min: 3, max: 3 }, refused: { min: 2, max: 2 } },
    clients: { seen: 2, refused: 1 },
    policies: [{ name: 'api', clients: { seen: 2, refused: 1 }, limits: [{ limit: 2, refused: { min: 2, max: 2 } }] }],
    refused: [
      {
        identity: 'ip=192.0.2.7',
        policy: 'api',
        requests: 4,
        refused: 2,
        firstMs: Date.UTC(2026, 2, 1, 0, 0, 10),
        agent: 'curl/8.9',
        paths: ['/users/:number'],
        statuses: { 404: 1, 200: 1 },
      },
    ],
    redis: { commands: 5, bytes: { min: 2 * 245 } },
  })
  expect(report.timeline.admitted.reduce((sum, count) => sum + count, 0)).toBe(3)
  expect(report.timeline.refused.reduce((sum, count) => sum + count, 0)).toBe(2)
})

test('the terminal names clients; JSON and the page have pseudonyms, and no queries', async () => {
  const files = filesOf({ 'access.log': LOG, 'policies.json': JSON.stringify(PER_MINUTE) })
  const html = `${files['access.log']}.html`
  const args = ['simulate', files['access.log'], '--document', files['policies.json']]
  const { stdout } = await sluice([...args, '--html', html])
  expect(stdout).toContain('5 requests of 2 clients: 2 (40 %) refused, of 1 client.')
  expect(stdout).toMatch(
    /^ip=192\.0\.2\.7 +api +2 of 4 +2026-03-01T00:00:10Z +200×1 404×1|404×1 200×1 +\/users\/:number/m,
  )
  const page = readFileSync(html, 'utf8')
  const json = (await sluice([...args, '--json'])).stdout
  for (const text of [page, json]) {
    expect(text).toMatch(/ip~[0-9a-f]{10}/)
    expect(text).not.toMatch(/192\.0\.2\.|secret/)
  }
  expect(statSync(html).mode & 0o777).toBe(0o600)
})

test('texts of clients steer no terminal', async () => {
  const agent = 'x\u001b[2J\u202e<script>'
  const log = [0, 1, 2].map((second) => line(second, '192.0.2.7', '/\u001b]0;owned\u0007', 200, agent)).join('')
  const files = filesOf({ 'access.log': log, 'policies.json': JSON.stringify(policyOf({ limit: 1, window: '1m' })) })
  const { stdout } = await sluice(['simulate', files['access.log'], '--document', files['policies.json']])
  expect(stdout).toContain('<script>')
  for (const steering of ['\u001b', '\u0007', '\u202e']) expect(stdout).not.toContain(steering)
})

test('a change is compared by clients, and a good client that it refuses fails the check', async () => {
  const files = filesOf({
    'access.log': LOG,
    'old.json': JSON.stringify(policyOf({ limit: 10, window: '1m' })),
    'new.json': JSON.stringify(PER_MINUTE),
    'partners.txt': '# our partners\n192.0.2.7/32 # ann\n',
  })
  const args = ['simulate', files['access.log'], '--document', files['new.json'], '--against', files['old.json']]
  const changed = await sluice([...args, '--good', files['partners.txt']])
  expect(changed.code).toBe(1)
  expect(changed.stdout).toContain('The change: +1 client refused, −0; +40 % of the requests')
  expect(changed.stdout).toContain('1 good client of 1 would be refused')
  const others = await sluice([...args, '--good', '192.0.2.8', '--json'])
  expect(others.code).toBe(0)
  expect(JSON.parse(others.stdout)).toMatchObject({
    good: { seen: 1, refused: [] },
    against: { newlyRefused: [{ refused: 2 }], noLongerRefused: [], requestsRefused: 0.4 },
  })
})

test('a policy in report mode holds no change back, and the report names what its enforcement would', async () => {
  const reported = policyOf({ limit: 2, window: '1m' }, { enforce: { mode: 'report' } })
  const args = ['--good', '192.0.2.7', '--against', filesOf({ 'old.json': JSON.stringify(PER_MINUTE) })['old.json']]
  const { code, report } = await simulated(LOG, reported, args)
  expect(code).toBe(0)
  expect(report.good).toEqual({ seen: 1, refused: [], absent: [] })
  expect(report.against?.noLongerRefused).toMatchObject([{ identity: 'ip=192.0.2.7' }])
  expect(report.caveats).toContain(
    '1 good client would be refused by policies in report mode, once these are enforced.',
  )
  const enforced = filesOf({ 'old.json': JSON.stringify(reported) })['old.json']
  const back = await simulated(LOG, PER_MINUTE, ['--good', '192.0.2.7', '--against', enforced])
  expect(back.code).toBe(1)
})

test('the curve is of worst windows, and suggests the limit from which few clients are refused', async () => {
  // Client n comes n times within a minute, and as often a minute later.
  const clients = Array.from({ length: 20 }, (_, n) => n + 1)
  const log = [0, 100]
    .flatMap((from) =>
      clients.flatMap((n) => Array.from({ length: n }, (_, i) => [from + i * 2, `192.0.2.${n}`] as const)),
    )
    .sort(([a], [b]) => a - b)
    .map(([second, ip]) => line(second, ip))
    .join('')
  const { report } = await simulated(log, policyOf({ limit: 10, window: '1m' }), ['--curve', '--good', '192.0.2.4/30'])
  const [limit] = report.policies[0]?.limits ?? []
  expect(limit?.rank?.map(({ units }) => units)).toEqual([...clients].reverse())
  // 192.0.2.7 is the busiest of the good ones.
  expect(limit?.headroom).toBeCloseTo(10 / 7)
  const { candidates = [], suggested } = limit?.tradeOff ?? {}
  expect(candidates.length).toBeGreaterThanOrEqual(16)
  for (const { limit: tried, requestsRefused, clientsRefused } of candidates) {
    const over = clients.map((n) => Math.max(0, n - tried))
    expect(clientsRefused, `${tried}`).toBeCloseTo(over.filter((units) => units > 0).length / 20)
    expect(requestsRefused, `${tried}`).toBeCloseTo(over.reduce((sum, units) => sum + units, 0) / 210)
  }
  expect(suggested).toBe(candidates.find(({ limit: tried }) => tried >= 20)?.limit)
})

test('each limit takes its own unit, also where another number is tried for one of them', async () => {
  const clients = [3, 5, 9]
  const log = clients
    .flatMap((n) => Array.from({ length: n }, (_, i) => [i * 2, `192.0.2.${n}`] as const))
    .sort(([a], [b]) => a - b)
    .map(([second, ip]) => line(second, ip))
    .join('')
  const limits = [
    { name: 'calls', algorithm: 'fixedWindow', limit: 8, window: '1m' },
    { name: 'tokens', algorithm: 'fixedWindow', unit: 'tokens', limit: 40, window: '1m' },
  ]
  const document = { version: 1, policies: { api: { limits, cost: { tokens: 10 } } } }
  const { report } = await simulated(log, document, ['--curve'])
  // Four requests of each client have room for their tokens.
  expect(report.policies[0]).toMatchObject({ requests: { refused: { min: 6, max: 6 } } })
  const [calls] = report.policies[0]?.limits ?? []
  for (const { limit, requestsRefused } of calls?.tradeOff?.candidates ?? []) {
    const over = clients.reduce((sum, n) => sum + Math.max(0, n - Math.min(limit, 4)), 0)
    expect(requestsRefused, `${limit}`).toBeCloseTo(over / 17)
  }
})

test('windows below three times the resolution of the clock give intervals that contain the truth', async () => {
  let seed = 1
  const random = () => {
    seed = (seed * 48271) % 2147483647
    return seed / 2147483647
  }
  const from = Date.UTC(2026, 2, 1)
  const visits = Array.from({ length: 2400 }, () => ({
    ms: from + Math.floor(random() * 24_000),
    client: Math.floor(random() ** 2 * 30),
  }))
  visits.sort((a, b) => a.ms - b.ms)
  const exact = visits
    .map(({ ms, client }) => `192.0.2.${client} ${(ms / 1000).toFixed(3)} "GET / HTTP/1.1" 200\n`)
    .join('')
  const coarse = visits.map(({ ms, client }) => line(Math.floor((ms - from) / 1000), `192.0.2.${client}`)).join('')
  for (const limit of [
    { limit: 3, window: '500ms' },
    { algorithm: 'gcra', limit: 4, window: '1s' },
    { algorithm: 'fixedWindow', limit: 20, window: '200ms', key: 'everyone' },
  ]) {
    const document = policyOf(limit)
    const truth = await simulated(exact, document, ['--format', '$remote_addr $msec "$request" $status'])
    const { report } = await simulated(coarse, document)
    expect(truth.report.requests.refused.min).toBe(truth.report.requests.refused.max)
    const { min, max } = report.requests.refused
    expect(truth.report.requests.refused.min).toBeGreaterThanOrEqual(min)
    expect(truth.report.requests.refused.min).toBeLessThanOrEqual(max)
    expect(min).toBeLessThan(max)
    expect(report.caveats.join()).toContain("The log's times are to 1000 ms")
  }
})

test('states beyond the memory are counted, and the result says so', async () => {
  const { simulate } = await import('../../packages/simulate/src/simulate.js')
  const log = Array.from({ length: 300 }, (_, i) => line(i % 50, `192.0.${i % 7}.${i % 250}`))
    .sort()
    .join('')
  const files = filesOf({ 'access.log': log, 'policies.json': JSON.stringify(PER_MINUTE) })
  const report = await simulate({
    logs: [files['access.log']],
    document: files['policies.json'],
    isLenient: true,
    bounds: { maxKeys: 10 },
  })
  expect(report.caveats.join()).toMatch(/(?<!\d)[1-9]\d* states were forgotten for lack of memory/)
})

test('a signal ends reading, and the report is of what was read', async () => {
  const { simulate } = await import('../../packages/simulate/src/simulate.js')
  const files = filesOf({ 'access.log': LOG.repeat(40_000), 'policies.json': JSON.stringify(PER_MINUTE) })
  const leaving = new AbortController()
  const options = { logs: [files['access.log']], document: files['policies.json'], isLenient: true }
  const report = await simulate({ ...options, signal: leaving.signal, onProgress: () => leaving.abort() })
  expect(report.log.isPartial).toBe(true)
  expect(report.requests.total).toBeGreaterThan(0)
  expect(report.requests.total).toBeLessThan(200_000)
  expect((await simulate({ ...options, signal: AbortSignal.abort() })).requests.total).toBe(0)
})

test('the terminal shows the cost of Redis, and which keys need a lease', async () => {
  const log = Array.from({ length: 1000 }, (_, i) => line(Math.floor(i / 200), `192.0.2.${i % 2 === 0 ? 7 : i % 250}`))
  const files = filesOf({ 'access.log': log.join(''), 'policies.json': JSON.stringify(PER_MINUTE) })
  const { stdout } = await sluice(['simulate', files['access.log'], '--document', files['policies.json']])
  expect(stdout).toMatch(
    /^In Redis: at most 1,000 commands, \dms(?: to \dms)? of CPU, [\d.]+ KiB to [\d.]+ KiB of memory$/m,
  )
  expect(stdout).toMatch(/^ {2}worth a lease: ip=192\.0\.2\.7, 12\d a second$/m)
  const other = policyOf({ algorithm: 'tokenBucket', capacity: 5, refill: 5, every: '1m' })
  const tokens = filesOf({ 'access.log': log.join(''), 'policies.json': JSON.stringify(other) })
  const unknown = await sluice(['simulate', tokens['access.log'], '--document', tokens['policies.json']])
  expect(unknown.stdout).toContain('CPU not measured for such policies, memory not measured for such policies')
})

test('a check of good clients fails where none of them is in the log, and names each that is not', async () => {
  const files = filesOf({
    'access.log': LOG,
    'policies.json': JSON.stringify(policyOf({ limit: 10, window: '1m' })),
    'partners.txt': '192.0.2.0/24\n192.0.2.8/32\n198.51.100.4\nuser=ann\n.http_user_agent=curl/8.9\n',
    'others.txt': '198.51.100.4\nuser=ann\n',
    'nothing.txt': '# no partner yet\n',
  })
  const args = ['simulate', files['access.log'], '--document', files['policies.json'], '--good']
  const some = await sluice([...args, files['partners.txt']])
  expect(some.code).toBe(0)
  expect(some.stdout).toContain(
    'Of 2 good clients, none would be refused.\nGood, but not in the log: 198.51.100.4, user=ann\n',
  )
  const none = await sluice([...args, files['others.txt']])
  expect(none.code).toBe(1)
  expect(none.stdout).toContain(
    'No good client is in the log, so that this shows nothing about them.\nGood, but not in the log: 198.51.100.4, user=ann\n',
  )
  const { stdout } = await sluice([...args, files['others.txt'], '--json'])
  expect(JSON.parse(stdout).good).toEqual({
    seen: 0,
    refused: [],
    absent: [expect.stringMatching(/^ip~/), expect.stringMatching(/^user~/)],
  })
  const empty = await sluice([...args, files['nothing.txt']])
  expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('--good: expected a client, got none in ')])
})

test('a change that newly refuses more than a share of the requests fails the check', async () => {
  const files = filesOf({
    'access.log': LOG,
    'old.json': JSON.stringify(policyOf({ limit: 10, window: '1m' })),
    'new.json': JSON.stringify(PER_MINUTE),
  })
  const args = ['simulate', files['access.log'], '--document', files['new.json']]
  const against = [...args, '--against', files['old.json'], '--max-refused']
  expect(await sluice([...against, '39.9%'])).toMatchObject({
    code: 1,
    stderr: 'sluice: the change newly refuses 40 % of the requests, more than --max-refused 39.9%\n',
    stdout: expect.stringContaining('The change: +1 client refused, −0; +40 % of the requests'),
  })
  expect(await sluice([...against, '40%'])).toMatchObject({ code: 0, stderr: '' })
  for (const share of ['0.1', '101%', '-1%', 'few'])
    expect(await sluice([...against, share])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`--max-refused: expected a share from 0% to 100%, got "${share}"`),
    })
  expect((await sluice([...args, '--max-refused', '1%'])).stderr).toContain('--max-refused: expected --against FILE')
})

test('a change that spares some clients and refuses others is judged by the others', async () => {
  const log = Array.from({ length: 10 }, (_, i) =>
    line(i, i < 5 ? '192.0.2.7' : '192.0.2.8', i < 5 ? '/a' : '/b'),
  ).join('')
  const of = (path: string) => ({
    version: 1,
    policies: { api: { match: { paths: [path] }, limits: [{ limit: 2, window: '1m' }] } },
  })
  const { 'old.json': old } = filesOf({ 'old.json': JSON.stringify(of('/a')) })
  const { report } = await simulated(log, of('/b'), ['--against', old])
  expect(report.against).toMatchObject({ requestsRefused: 0, requestsNewlyRefused: 0.3 })
})

test('a log is cut at two times', async () => {
  const cut = async (...args: string[]) => (await simulated(LOG, PER_MINUTE, args)).report
  expect((await cut('--since', '2026-03-01T00:00:02Z')).requests.total).toBe(3)
  expect((await cut('--until', '2026-03-01T00:00:02Z')).requests.total).toBe(2)
  expect(await cut('--since', '2026-03-01T01:00:01+01:00', '--until', '2026-03-01 00:00:20')).toMatchObject({
    requests: { total: 3 },
    log: { firstMs: Date.UTC(2026, 2, 1, 0, 0, 1), lastMs: Date.UTC(2026, 2, 1, 0, 0, 10) },
  })
  expect((await cut('--since', '2026-03-01', '--until', '2026-03-01T00:01Z')).requests.total).toBe(5)
  await expect(cut('--since', '2026-03-02')).rejects.toThrow(
    '--since and --until leave out every request: the logs are from 2026-03-01T00:00:00Z to 2026-03-01T00:00:20Z',
  )
  await expect(cut('--since', 'yesterday')).rejects.toThrow('--since: expected a time such as 2026-03-01T12:00:00Z')
  await expect(cut('--since', '2026-03-02', '--until', '2026-03-01')).rejects.toThrow('--until: expected a time after')
})

test('a wrong time is an error before any log is opened, which the program would wait for', async () => {
  const { 'policies.json': document } = filesOf({ 'policies.json': JSON.stringify(PER_MINUTE) })
  const missing = `${document}.log`
  for (const args of [['--document', document], []]) {
    const { code, stderr } = await sluice(['simulate', missing, ...args, '--since', 'yesterday'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--since: expected a time')])
  }
})
