// Release: replays many logs.
import { expect, test } from 'vitest'
import { randomFrom } from '../contract/policies.js'
import { line, policyOf, simulated } from './support.js'

const EXACT = ['--format', '$remote_addr $msec "$request" $status']
const FROM = Date.UTC(2026, 2, 1)

function sharesFrom(seed: number): () => number {
  const random = randomFrom(seed)
  return () => random(1e6) / 1e6
}

interface Visit {
  readonly ms: number
  readonly client: number
}

/** Bursts and ordinary visits of a few clients, in the order of time. */
function visits(random: () => number, count: number, lengthMs: number): Visit[] {
  const all: Visit[] = []
  while (all.length < count) {
    const client = Math.floor(random() ** 2 * 12)
    const burst = random() < 0.1 ? Math.ceil(random() * 30) : 1
    const at = random() * lengthMs
    for (let i = 0; i < burst; i++) all.push({ ms: Math.floor(at + i * random() * 400), client })
  }
  return all.sort((a, b) => a.ms - b.ms)
}

const exactLog = (all: readonly Visit[]) =>
  all.map(({ ms, client }) => `192.0.2.${client} ${((FROM + ms) / 1000).toFixed(3)} "GET / HTTP/1.1" 200\n`).join('')
const coarseLog = (all: readonly Visit[]) =>
  all.map(({ ms, client }) => line(Math.floor(ms / 1000), `192.0.2.${client}`)).join('')

test.each(Array.from({ length: 24 }, (_, seed) => seed + 1))(
  'intervals of times to the second contain what exact times give (seed %i)',
  async (seed) => {
    const random = sharesFrom(seed)
    const limit = () => ({ limit: 1 + Math.floor(random() * 12), window: `${200 + Math.floor(random() * 12_000)}ms` })
    const limits =
      random() < 0.3
        ? [
            { ...limit(), name: 'a' },
            { ...limit(), name: 'b' },
          ]
        : [limit()]
    const document = { version: 1, policies: { api: { limits } } }
    const all = visits(random, 600, 30_000 + random() * 60_000)
    const truth = (await simulated(exactLog(all), document, [...EXACT, '--curve'])).report
    const { report } = await simulated(coarseLog(all), document, ['--curve'])
    const [exact, coarse] = [truth.policies[0], report.policies[0]]
    expect([exact?.isBounded, coarse?.isBounded]).toEqual([true, true])
    const within = (number: number | undefined, interval: { min: number; max: number } | undefined) => {
      expect(number).toBeGreaterThanOrEqual(interval?.min as number)
      expect(number).toBeLessThanOrEqual(interval?.max as number)
    }
    expect(exact?.requests.refused.min).toBe(exact?.requests.refused.max)
    for (const [of, by] of [
      [truth.requests, report.requests],
      [exact?.requests, coarse?.requests],
    ] as const) {
      within(of?.refused.min, by?.refused)
      within(of?.admitted.min, by?.admitted)
    }
    within(exact?.clients.refused, coarse?.clients.refusedBounds)
    within(truth.clients.refused, report.clients.refusedBounds)
    if (limits.length === 1) within(exact?.limits[0]?.refused.min, coarse?.limits[0]?.refused)
    exact?.limits.forEach(({ headroom }, i) => within(headroom, coarse?.limits[i]?.headroomBounds))
    expect(report.caveats.join()).not.toMatch(/have no bound|evenly spread/)
  },
)

test.each([1, 2, 3, 4, 5, 6])(
  'policies in report mode have bounds beside each other and beside one that refuses (seed %i)',
  async (seed) => {
    const random = sharesFrom(100 + seed)
    const limit = () => ({ limit: 1 + Math.floor(random() * 12), window: `${200 + Math.floor(random() * 12_000)}ms` })
    const reported = () => ({ enforce: { mode: 'report' }, limits: [limit()] })
    const document = { version: 1, policies: { a: reported(), b: reported(), c: { limits: [limit()] } } }
    const all = visits(random, 600, 30_000 + random() * 60_000)
    const { report: truth } = await simulated(exactLog(all), document, EXACT)
    const { report } = await simulated(coarseLog(all), document)
    for (const [i, { requests, clients, isBounded }] of report.policies.entries()) {
      const exact = truth.policies[i]
      expect(isBounded).toBe(true)
      for (const [number, { min, max }] of [
        [exact?.requests.refused.min ?? -1, requests.refused],
        [exact?.clients.refused ?? -1, clients.refusedBounds ?? { min: 0, max: 0 }],
      ] as const) {
        expect(number).toBeGreaterThanOrEqual(min)
        expect(number).toBeLessThanOrEqual(max)
      }
    }
    expect(report.caveats.join()).toContain('the effect of other limits come without bounds')
  },
)

test('the report says which policies have no bound', async () => {
  const all = visits(sharesFrom(7), 300, 30_000)
  const unbounded = [
    policyOf({ limit: 3, window: '10s' }, { ban: { after: 2, within: '1m', for: ['5m'] } }),
    policyOf({ limit: 3, window: '10s' }, { count: { only: 'failure' } }),
    policyOf({ algorithm: 'fixedWindow', limit: 3, window: '10s' }),
    policyOf({ algorithm: 'gcra', limit: 3, window: '10s' }),
    {
      version: 1,
      policies: { api: { limits: [{ limit: 3, window: '10s' }] }, b: { limits: [{ limit: 2, window: '5s' }] } },
    },
  ]
  for (const document of unbounded) {
    const { report } = await simulated(coarseLog(all), document)
    expect(report.policies[0]).toMatchObject({ isBounded: false })
    expect(report.caveats.join()).toMatch(/The log's times are to 1000 ms, and the numbers of "api".* have no bound/)
  }
})

test('the resolution is that of the whole log, and times that become coarser have no bound', async () => {
  const seconds = (from: number, count: number, decimals: number) =>
    Array.from(
      { length: count },
      (_, i) => `192.0.2.7 ${(FROM / 1000 + from + i).toFixed(decimals)} "GET / HTTP/1.1" 200\n`,
    ).join('')
  const log = seconds(0, 9000, 3) + seconds(9000, 3000, 0)
  const { report } = await simulated(log, policyOf({ limit: 2, window: '10s' }), EXACT)
  expect(report.log.resolutionMs).toBe(1000)
  expect(report.policies[0]?.isBounded).toBe(false)
  expect(report.caveats.join()).toContain('have no bound')
})
