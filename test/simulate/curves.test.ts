// Release: replays many logs.
import { expect, test } from 'vitest'
import type { LimitReport, PolicyReport } from '../../packages/simulate/src/report.js'
import { randomFrom } from '../contract/policies.js'
import { filesOf, line, simulated } from './support.js'

const FORMAT = ['--format', '$remote_addr $msec $request_time "$request" $status $body_bytes_sent']
const FROM = Date.UTC(2026, 2, 1) / 1000

function timed(at: number, client: number, seconds: number, status: number): string {
  return `192.0.2.${client} ${(FROM + at + seconds).toFixed(3)} ${seconds.toFixed(3)} "GET / HTTP/1.1" ${status} 3000\n`
}

/** Six clients of whom some come much more often, slowly answered, and often in vain. */
const VISITS = Array.from({ length: 300 }, (_, i) => {
  const client = 1 + ((i * i) % 6)
  return timed(i / 10, client, client / 20, i % 3 === 0 ? 401 : 200)
}).join('')

function shareAt({ limit, tradeOff }: LimitReport) {
  const { requestsRefused, clientsRefused } =
    tradeOff?.candidates.find((candidate) => candidate.limit === limit) ?? expect.unreachable()
  return { requests: requestsRefused, clients: clientsRefused }
}

function playedShare({ requests, clients }: PolicyReport) {
  return { requests: requests.refused.min / requests.total, clients: clients.refused / clients.seen }
}

const LIMIT = { limit: 6, window: '10s' }
test.each([
  ['one limit', { limits: [LIMIT] }],
  ['a bucket', { limits: [{ algorithm: 'gcra', ...LIMIT, burst: 2 }] }],
  ['a window of the calendar', { limits: [{ algorithm: 'fixedWindow', limit: 30, window: 'day' }] }],
  ['several limits of one client', { limits: [LIMIT, { name: 'long', limit: 20, window: '60s' }] }],
  ['a limit that clients share', { limits: [{ ...LIMIT, limit: 40, key: 'everyone' }] }],
  ['limits by clients and of all', { limits: [LIMIT, { name: 'all', limit: 40, window: '10s', key: 'everyone' }] }],
  ['only failures count', { count: { only: 'failure' }, limits: [LIMIT] }],
  ['bans', { ban: { by: 'ip', after: 3, within: '1m', for: ['20s'], private: true }, limits: [LIMIT] }],
  ['permits', { limits: [{ algorithm: 'concurrency', limit: 1 }] }],
  ['delays', { respond: { delay: { max: '1s' } }, limits: [LIMIT] }],
  ['a queue', { respond: { queue: { maxWait: '1s', size: 2 } }, limits: [LIMIT] }],
  ['bytes', { limits: [{ algorithm: 'fixedWindow', limit: 30_000, window: '10s', unit: 'response-bytes' }] }],
])('the curve passes through what the policy itself refuses: %s', async (_, policy) => {
  const { report } = await simulated(VISITS, { version: 1, policies: { api: policy } }, [...FORMAT, '--curve'])
  const [api] = report.policies as [PolicyReport]
  expect(api.requests.refused.min).toBeGreaterThan(0)
  for (const limit of api.limits) {
    expect(limit.tradeOff?.candidates.length).toBeGreaterThanOrEqual(16)
    expect(shareAt(limit)).toEqual(playedShare(api))
    const [lowest, highest] = [limit.tradeOff?.candidates.at(0), limit.tradeOff?.candidates.at(-1)]
    expect(lowest?.requestsRefused).toBeGreaterThan(highest?.requestsRefused as number)
  }
})

test('a window of the calendar refuses what exceeds it in each period of its time zone, with any number', async () => {
  const HOUR_S = 3600
  // Midnight in Berlin is at 23:00 UTC.
  const visits = [22.9, 23, 34, 46.9, 47].flatMap((hour, i) =>
    Array.from({ length: 3 + i }, (_, n) => timed(hour * HOUR_S + n, 1, 0, 200)),
  )
  const perDay = [3, 4 + 5 + 6, 7]
  const limit = { algorithm: 'fixedWindow', limit: 5, window: 'day', timeZone: 'Europe/Berlin' }
  const document = { version: 1, policies: { api: { limits: [limit] } } }
  const { report } = await simulated(visits.join(''), document, [...FORMAT, '--curve'])
  const [api] = report.policies as [PolicyReport]
  const overAll = (of: number) => perDay.reduce((sum, units) => sum + Math.max(0, units - of), 0)
  expect(api.requests.refused).toEqual({ min: overAll(5), max: overAll(5) })
  expect(api.limits).toMatchObject([{ calendar: 'day', windowMs: 24 * HOUR_S * 1000 }])
  const { candidates = [] } = (api.limits[0] as LimitReport).tradeOff ?? {}
  expect(candidates.length).toBeGreaterThanOrEqual(16)
  for (const each of candidates) expect(each.requestsRefused).toBeCloseTo(overAll(each.limit) / visits.length)
})

/** The most units of each client within a window that ends at one of its requests, highest first. */
function worstWindows(visits: readonly Visit[], windowMs: number, unitsOf: (visit: Visit) => number): number[] {
  const worst = new Map<string, number>()
  for (const { ip, at } of visits) {
    const inWindow = visits.filter((each) => each.ip === ip && each.at <= at && each.at > at - windowMs)
    const units = inWindow.reduce((sum, each) => sum + unitsOf(each), 0)
    worst.set(ip, Math.max(worst.get(ip) ?? 0, units))
  }
  return [...worst.values()].filter((units) => units > 0).sort((a, b) => b - a)
}

interface Visit {
  readonly at: number
  readonly ip: string
  readonly status: number
  readonly bytes: number
  readonly requests: number
  readonly tokens: number
}

const COSTS = '{ requests: (r) => +r.field(".requests"), tokens: (r) => +r.field(".tokens") }'
const JSON_FORMAT = '{"time": ".at", "ip": ".ip", "status": ".status", "bytes": ".bytes"}'

test.each<[string, object, number, (visit: Visit) => number]>([
  [
    'requests by a cost',
    { cost: { requests: 'requests' }, limits: [{ limit: 12, window: '10s' }] },
    10_000,
    ({ requests }) => requests,
  ],
  [
    'tokens',
    { cost: { tokens: 'tokens' }, limits: [{ algorithm: 'tokenBucket', unit: 'tokens', refill: 70_000, every: '1m' }] },
    60_000,
    ({ tokens }) => tokens,
  ],
  [
    'bytes of responses',
    { limits: [{ algorithm: 'fixedWindow', unit: 'response-bytes', limit: 200_000, window: '30s' }] },
    30_000,
    ({ bytes }) => bytes,
  ],
  [
    'failures',
    { count: { only: 'failure' }, limits: [{ limit: 2, window: '10s' }] },
    10_000,
    ({ status }) => (status === 401 ? 1 : 0),
  ],
])('the rank and the headroom of a limit are of what it counts: %s', async (unit, policy, windowMs, unitsOf) => {
  const random = randomFrom(unit.length)
  let at = FROM * 1000
  const visits = Array.from({ length: 200 }, (): Visit => {
    at += random(3) === 0 ? 0 : random(4000)
    const status = random(3) === 0 ? 401 : 200
    const [requests, tokens, bytes] = [random(5), random(4) === 0 ? 0 : random(50_000), random(90_000)]
    return { at, ip: `192.0.2.${1 + random(12)}`, status, requests, tokens, bytes }
  })
  const log = visits.map((visit) => `${JSON.stringify(visit)}\n`).join('')
  const files = filesOf({ 'resolvers.mjs': `export const costs = ${COSTS}` })
  const args = ['--format', JSON_FORMAT, '--resolvers', files['resolvers.mjs'], '--curve']
  const { report } = await simulated(log, { version: 1, policies: { api: policy } }, args)
  const [api] = report.policies as [PolicyReport]
  const { limit, rank, headroom } = api.limits[0] as LimitReport
  const worst = worstWindows(visits, windowMs, unitsOf)
  expect(rank?.map(({ units }) => units)).toEqual(worst)
  expect(headroom).toBeCloseTo(limit / (worst[0] as number))
})

test('a response of an absurd size ends, and uses up its limit', async () => {
  const log = [1e18, 1].map((bytes, i) => JSON.stringify({ at: FROM * 1000 + i, ip: '192.0.2.1', status: 200, bytes }))
  const limit = { algorithm: 'fixedWindow', unit: 'response-bytes', limit: 1000, window: '1m' }
  const document = { version: 1, policies: { api: { limits: [limit] } } }
  const { report } = await simulated(`${log.join('\n')}\n`, document, ['--format', JSON_FORMAT])
  expect(report.requests).toMatchObject({ total: 2, refused: { max: 1 } })
})

test('estimates that are capped are capped at each limit that is tried', async () => {
  const log = Array.from({ length: 4 }, (_, i) => timed(i, 1, 0, 200)).join('')
  const limit = { algorithm: 'fixedWindow', unit: 'tokens', limit: 1000, window: '1m', estimate: 'cap' }
  const document = { version: 1, policies: { api: { cost: { tokens: 1500 }, limits: [limit] } } }
  const { report } = await simulated(log, document, [...FORMAT, '--curve'])
  const [api] = report.policies as [PolicyReport]
  const { candidates = [] } = (api.limits[0] as LimitReport).tradeOff ?? {}
  expect(candidates.length).toBeGreaterThanOrEqual(16)
  for (const { limit: tried, requestsRefused } of candidates) {
    const admitted = Math.max(1, Math.min(4, Math.floor(tried / 1500)))
    expect([tried, requestsRefused]).toEqual([tried, 1 - admitted / 4])
  }
})

test('clients with an override keep its numbers, and the report says so', async () => {
  const document = {
    version: 1,
    policies: { api: { limits: [LIMIT] } },
    overrides: [{ policy: 'api', key: { ip: '192.0.2.5' }, limits: [{ limit: 9 }] }],
  }
  const { report } = await simulated(VISITS, document, [...FORMAT, '--curve'])
  const [api] = report.policies as [PolicyReport]
  expect(shareAt(api.limits[0] as LimitReport)).toEqual(playedShare(api))
  expect(report.caveats).toContain('Other limits are tried with the overrides as they are.')
})

test('of many clients a share is tried, with all that are refused early, and the report says so', async () => {
  // Three come often from the beginning, the others once each.
  const log = Array.from({ length: 20_000 }, (_, i) => {
    const n = i >> 1
    const ip = i % 2 === 0 ? `198.51.100.${i % 3}` : `203.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
    return `${ip} ${(FROM + i / 100).toFixed(3)} 0 "GET / HTTP/1.1" 200 1\n`
  }).join('')
  const document = { version: 1, policies: { api: { limits: [{ limit: 100, window: '10s' }] } } }
  const { report } = await simulated(log, document, [...FORMAT, '--curve'])
  const [api] = report.policies as [PolicyReport]
  const [limit] = api.limits as [LimitReport]
  expect(limit.tradeOff?.sample).toBe(0.5)
  expect(shareAt(limit)).toEqual(playedShare(api))
  expect(limit.tradeOff?.candidates[0]?.clientsRefused).toBeCloseTo(3 / 10_003)
})

test('the trade-off of a policy leaves out what the policies beside it refuse', async () => {
  // 20 requests of each client within a minute: 5 fit into the strict policy, and all of them into the other.
  const log = Array.from({ length: 200 }, (_, i) => line(Math.floor(i / 10), `192.0.2.${i % 10}`)).join('')
  const policies = {
    all: { limits: [{ limit: 60, window: '1m' }] },
    strict: { limits: [{ limit: 5, window: '1m' }] },
    users: { key: 'user', limits: [{ limit: 7, window: '1m' }] },
  }
  const named = log.replaceAll('- -', '- ann')
  const { report } = await simulated(named, { version: 1, policies }, ['--curve'])
  const tradeOffs = report.policies.map(({ limits }) => limits[0]?.tradeOff)
  const [all, strict, users] = tradeOffs
  for (const { limit, requestsRefused, clientsRefused } of all?.candidates ?? []) {
    // Only what is below the strict limit adds refusals, as far as the user's requests do not take their place.
    if (limit >= 5) expect([limit, requestsRefused, clientsRefused]).toEqual([limit, 0, 0])
  }
  expect(all?.suggested).toBeLessThanOrEqual(15)
  expect(strict?.candidates.at(-1)?.requestsRefused).toBe(0)
  expect(users?.candidates[0]?.requestsRefused).toBeGreaterThan(0)
})
