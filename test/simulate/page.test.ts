import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { markup } from '../../packages/simulate/src/report/html/markup.js'
import { pageOf } from '../../packages/simulate/src/report/html/page.js'
import type { SimulationReport } from '../../packages/simulate/src/report.js'
import { HOSTILE, withTexts } from './hostile-texts.js'
import { sampleReport } from './sample-report.js'

/** The names of the tags of a page, in their order. */
const tagsOf = (page: string) => [...page.matchAll(/<\/?([a-z][a-z\d]*)/gi)].map(([tag]) => tag)
const jsonOf = (page: string) => /<script type="application\/json" id="report">(.*)<\/script>/s.exec(page)?.[1] ?? ''

const EMPTY: SimulationReport = {
  ...sampleReport(),
  log: {
    files: ['empty.log'],
    formats: [],
    lines: 0,
    unread: { count: 0, examples: [] },
    late: 0,
    firstMs: Number.NaN,
    lastMs: Number.NaN,
    resolutionMs: 1,
    isPartial: false,
  },
  caveats: [],
  requests: sampleCounts(),
  clients: { seen: 0, refused: 0 },
  policies: [],
  timeline: { stepMs: 1000, fromMs: 0, admitted: [], refused: [], peaks: [] },
  refused: [],
  good: undefined,
  against: undefined,
  redis: { commands: 0, cpuMs: undefined, bytes: undefined, hot: [] },
}

function sampleCounts() {
  const none = { min: 0, max: 0 }
  return { total: 0, admitted: none, refused: none, banned: none, delayed: none }
}

test.each(HOSTILE)('a text of a client is text on the page: %j', (text) => {
  const page = pageOf(withTexts(sampleReport(), text))
  expect(tagsOf(page)).toEqual(tagsOf(pageOf(withTexts(sampleReport(), 'harmless'))))
  // Only line breaks of the page itself steer, and nothing turns the direction of text.
  expect(page.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(jsonOf(page)).not.toMatch(/[<>&\n]/)
  expect(JSON.parse(jsonOf(page)).refused[0].agent).toBe(text)
})

test('a text in an attribute does not end it', () => {
  expect(markup`<p title="${`"'<`}">${['a', markup`<b>&amp;</b>`, undefined, 1]}</p>`.text).toBe(
    '<p title="&#34;&#39;&#60;">a<b>&amp;</b>1</p>',
  )
})

test('the page has the report as JSON', () => {
  expect(JSON.parse(jsonOf(pageOf(sampleReport())))).toEqual(JSON.parse(JSON.stringify(sampleReport())))
})

test('the policy of the page allows its one style, and nothing else', () => {
  const page = pageOf(sampleReport())
  const [, policy = ''] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(page) ?? []
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  expect(policy).toBe(`default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`)
  expect(page.indexOf('Content-Security-Policy')).toBeLessThan(page.indexOf('<style>'))
  expect(page).not.toMatch(/\sstyle=|\son[a-z]+=|\s(src|xlink:href)=|href="(?!#)/)
  expect(page.match(/<(script|link|iframe|object|embed|img|base|form)\b[^>]*>/g)).toEqual([
    '<script type="application/json" id="report">',
  ])
})

test('the page tells the result in sentences, with intervals where the log is coarse', () => {
  const page = pageOf(sampleReport())
  expect(page).toContain('would refuse between 58,960 and 59,160 of 704,210 requests (8.4 %), and 24 of 4,210 clients')
  expect(page).toContain('<p>Refused most: <code>')
  expect(page).toContain('+12 clients refused, −3 clients. 0.4 % of the requests would be refused in addition.')
  expect(page).toContain('2 of the 120 clients marked good would be refused.')
  expect(page).toContain('The policy is in report mode')
  expect(page).toContain('310; half up to 120ms, 99 % up to 2.4s, longest 9.8s')
  expect(page).toContain('<code>--curve</code> adds both')
  expect(page).not.toContain('Reading ended before')
  const partial = { ...sampleReport(), log: { ...sampleReport().log, isPartial: true } }
  expect(pageOf(partial)).toContain('Reading ended before the logs did')
})

test('a log without requests has a page without plots', () => {
  const page = pageOf(EMPTY)
  expect(page).toContain('The logs have no requests.')
  expect(page).toContain('No client would be refused.')
  expect(page).not.toMatch(/NaN|Infinity|undefined|<svg/)
})

test.each([
  ['one client', [{ rank: 1, units: 1 }]],
  [
    'clients with nothing',
    [
      { rank: 1, units: 0 },
      { rank: 2, units: 0 },
    ],
  ],
  [
    'very many units',
    [
      { rank: 1, units: 1e12 },
      { rank: 1e6, units: 1 },
    ],
  ],
])('plots of unusual data have numbers: %s', (_, rank) => {
  const report = sampleReport()
  const [policy, ...others] = report.policies
  if (!policy?.limits[0]) throw new Error('no policy')
  const candidates = [{ limit: 1, requestsRefused: 0, clientsRefused: 0 }]
  const limit = { ...policy.limits[0], limit: 1, rank, tradeOff: { candidates, suggested: 1, sample: 1 } }
  const timeline = { stepMs: 1, fromMs: 1e12, admitted: [0], refused: [0], peaks: [] }
  const page = pageOf({ ...report, timeline, policies: [{ ...policy, limits: [limit] }, ...others] })
  expect(page).not.toMatch(/NaN|Infinity|undefined/)
  expect(page).toContain('class="suggested line"')
})

test('the trade-off shows each candidate, its limit and the suggested one', () => {
  const report = sampleReport()
  const page = pageOf(report)
  const tradeOff = report.policies[0]?.limits[0]?.tradeOff
  expect(page).toContain(`The lowest candidate that refuses fewer than 0.1 % of the clients is ${tradeOff?.suggested}.`)
  expect(page.match(/<circle class="requests"/g)).toHaveLength(2 * 17)
  expect(page.match(/<rect class="clients" x=/g)).toHaveLength(2 * 17)
  expect(page).toContain(
    'The shares are estimates, by clients that the lowest candidate refuses, and by 25 % of the others, chosen by hash.',
  )
})

test('the last time of the timeline is not cut by the edge', () => {
  const counts = Array.from({ length: 150 }, () => 1)
  const timeline = { stepMs: 1000, fromMs: Date.UTC(2026, 2, 1), admitted: counts, refused: counts, peaks: [] }
  const page = pageOf({ ...sampleReport(), timeline })
  expect(page).toContain('<text class="tick end" x="100%" y="100%" dy="18">00:02:30</text>')
  expect(page).toMatch(/<text class="tick middle" x="[\d.]+%" y="100%" dy="18">00:02:00</)
})

test('clients and headroom of a page are intervals where the log is coarse', () => {
  const report = sampleReport()
  const [policy, ...others] = report.policies
  if (!policy?.limits[0]) throw new Error('no policy')
  const limit = { ...policy.limits[0], headroom: 2, headroomBounds: { min: 1.5, max: 2 } }
  const clients = { seen: 100, refused: 24, refusedBounds: { min: 20, max: 30 } }
  const page = pageOf({ ...report, clients, policies: [{ ...policy, clients, limits: [limit] }, ...others] })
  expect(page).toContain('and between 20 and 30 of 100 clients at least once')
  expect(page.match(/20–30 \(20 % to 30 %\)/g)).toHaveLength(2)
  expect(page).toContain('the limit is 1.5 to 2 times')
})

test('a page whose good clients are not in the log does not say that none would be refused', () => {
  const page = pageOf({ ...sampleReport(), good: { seen: 0, refused: [], absent: ['192.0.2.9'] } })
  expect(page).toContain('No client marked good is in the log')
  expect(page).not.toContain('None of the')
})
