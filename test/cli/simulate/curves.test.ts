import { expect, test } from 'vitest'
import type { LimitReport, PolicyReport } from '../../../packages/cli/src/simulate/report.js'
import { simulated } from './support.js'

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
