import type {
  Counts,
  LimitReport,
  PolicyReport,
  RefusedClient,
  SimulationReport,
} from '../../packages/simulate/src/report.js'
import { randomOf } from '../support/zipf.js'

const HOUR_MS = 3_600_000
const FROM_MS = Date.UTC(2026, 10, 25)
const STEP_MS = HOUR_MS / 12
const AGENTS = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'python-requests/2.32.3',
  'ExampleBot/2.1 (+https://bot.example/about)',
  undefined,
]
const PATHS = ['/api/items/:number', '/login', '/search', '/assets/:token.js']

const exactly = (number: number) => ({ min: number, max: number })

/** Nearly all refusals are of programs at the login. */
function splitsOf(requests: number, refused: number): SimulationReport['splits'] {
  const share = (part: number) => Math.round(part * requests)
  const most = Math.round(0.9 * refused)
  return {
    byPaths: [
      { name: '/login/**', requests: share(0.1), refused: most },
      { name: '/products/**', requests: share(0.9), refused: refused - most },
    ],
    byStatus: [
      { name: '401', requests: share(0.08), refused: most },
      { name: '200', requests: share(0.92), refused: refused - most },
    ],
    byClient: [
      { name: 'programs', requests: share(0.2), refused: most },
      { name: 'browsers', requests: share(0.8), refused: refused - most },
    ],
  }
}

/** A whole report of a day, always the same, with everything that a report may have. */
export function sampleReport(seed = 7): SimulationReport {
  const random = randomOf(seed)
  const timeline = dayOf(random)
  const total = sum(timeline.admitted) + sum(timeline.refused)
  const requests = countsOf(total, sum(timeline.refused))
  const refused = Array.from({ length: 24 }, (_, i) => clientOf(i, random))
  return {
    form: 1,
    identities: 'plain',
    log: {
      files: ['/var/log/nginx/access.log', '/var/log/nginx/access.log.1.gz'],
      formats: ['combined'],
      lines: total + 12,
      unread: { count: 12, examples: ['192.0.2.99 - - [broken'] },
      late: 3,
      firstMs: FROM_MS,
      lastMs: FROM_MS + 24 * HOUR_MS - 1,
      resolutionMs: 1000,
      isPartial: false,
    },
    caveats: [
      'The log has times to the second. The result of limits with windows below 3 s is an interval.',
      'Refused clients would try again or leave, which a replay cannot know.',
      'The address 10.0.0.5 has 61 % of the traffic: is it a proxy? --client or --trust-proxy names the real client.',
    ],
    requests,
    wouldBeRefused: requests.refused.min,
    splits: splitsOf(total, requests.refused.min),
    clients: { seen: 4210, refused: 24 },
    policies: [apiPolicy(requests, random), loginPolicy(random)],
    timeline,
    refused,
    good: { seen: 120, refused: refused.slice(3, 5).map((client) => ({ ...client, isGood: true })), absent: [] },
    against: {
      newlyRefused: refused.slice(0, 12),
      noLongerRefused: Array.from({ length: 3 }, (_, i) => clientOf(100 + i, random)),
      requestsRefused: 0.004,
      requestsNewlyRefused: 0,
    },
    redis: {
      commands: total,
      cpuMs: { min: total * 0.004, max: total * 0.007 },
      bytes: { min: 410_000, max: 530_000 },
      hot: [{ identity: 'ip=10.0.0.5', perSecond: 412 }],
    },
  }
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0)

const countsOf = (total: number, refused: number): Counts => ({
  total,
  admitted: { min: total - refused - 200, max: total - refused },
  refused: { min: refused, max: refused + 200 },
  banned: exactly(Math.round(refused / 5)),
  delayed: exactly(0),
})

/** A day in steps of five minutes: an evening's peak, and two attacks that are refused. */
function dayOf(random: () => number): SimulationReport['timeline'] {
  const admitted: number[] = []
  const refused: number[] = []
  for (let i = 0; i < 288; i++) {
    const daily = 1 + Math.cos(((i - 230) / 288) * 2 * Math.PI)
    const attack = (i > 60 && i < 66) || (i > 200 && i < 215)
    admitted.push(Math.round(1500 * daily + 500 + random() * 300 + (attack ? 1200 : 0)))
    refused.push(attack ? Math.round(2500 + random() * 1500) : random() < 0.1 ? Math.round(random() * 60) : 0)
  }
  const all = admitted.map((count, i) => count + (refused[i] as number))
  const highest = () => all.indexOf(Math.max(...all))
  const peaks = [highest(), 64, 230].map((i) => ({
    atMs: FROM_MS + i * STEP_MS,
    requests: all[i] as number,
    refused: refused[i] as number,
  }))
  return { stepMs: STEP_MS, fromMs: FROM_MS, admitted, refused, peaks }
}

function apiPolicy(requests: Counts, random: () => number): PolicyReport {
  return {
    name: 'api',
    mode: 'enforce',
    requests,
    clients: { seen: 4210, refused: 22 },
    isBounded: true,
    limits: [
      limitOf({ name: 'minute', algorithm: 'gcra', limit: 120, windowMs: 60_000 }, random),
      limitOf({ name: 'day', algorithm: 'fixedWindow', limit: 20_000, windowMs: 24 * HOUR_MS }, random),
    ],
    bans: { begun: 4, longestMs: 24 * HOUR_MS },
    waits: undefined,
  }
}

function loginPolicy(random: () => number): PolicyReport {
  const {
    rank: _,
    tradeOff: __,
    ...plain
  } = limitOf({ name: 'account', algorithm: 'slidingLog', limit: 5, windowMs: 900_000 }, random)
  return {
    name: 'login',
    mode: 'report',
    requests: countsOf(3120, 40),
    clients: { seen: 1020, refused: 2 },
    isBounded: true,
    limits: [{ ...plain, rank: undefined, tradeOff: undefined, headroom: undefined }],
    bans: undefined,
    waits: { count: 310, p50: 120, p99: 2400, max: 9800 },
  }
}

function limitOf(
  about: { name: string; algorithm: string; limit: number; windowMs: number },
  random: () => number,
): LimitReport {
  const busiest = 10 + 30 * random()
  const ranks = Array.from({ length: 200 }, (_, i) => Math.max(i + 1, Math.round(4210 ** (i / 199))))
  const rank = [...new Set(ranks)].map((rank) => ({
    rank,
    units: Math.max(1, Math.round((about.limit * busiest) / rank ** 0.9)),
  }))
  const candidates = Array.from({ length: 17 }, (_, i) => {
    const limit = Math.max(1, Math.round(about.limit * 2 ** ((i - 8) / 2)))
    const clientsRefused = rank.filter(({ units }) => units > limit).at(-1)?.rank ?? 0
    return {
      limit,
      requestsRefused: clientsRefused === 0 ? 0 : 0.02 * (about.limit / limit) ** 1.4,
      clientsRefused: clientsRefused / 4210,
    }
  })
  const suggested = candidates.find(({ clientsRefused }) => clientsRefused < 0.001)?.limit
  return {
    ...about,
    unit: 'requests',
    refused: { min: 900, max: 1100 },
    rank,
    tradeOff: { candidates, suggested, sample: about.windowMs > HOUR_MS ? 0.25 : 1 },
    headroom: 1.7,
  }
}

function clientOf(i: number, random: () => number): RefusedClient {
  const requests = Math.round(90_000 / (i + 1))
  const refused = Math.round(requests * random())
  return {
    identity: i % 5 === 4 ? `user=name-${i}` : `ip=198.51.100.${i}`,
    policy: i % 6 === 5 ? 'login' : 'api',
    requests,
    refused,
    firstMs: FROM_MS + Math.round(random() * 24 * HOUR_MS),
    agent: AGENTS[i % AGENTS.length],
    paths: PATHS.slice(0, 1 + (i % PATHS.length)),
    statuses: { '200': requests - 40, '404': 30, '500': 10 },
    isGood: false,
  }
}
