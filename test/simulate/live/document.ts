import type { Visit } from './live-servers.js'

const AT_ONCE = { window: '10s' }

/** Policies of every kind, each on a path of its own. */
export const DOCUMENT = {
  version: 1,
  policies: {
    log: { match: { paths: ['/log/**'] }, limits: [{ limit: 3, ...AT_ONCE }] },
    fixed: { match: { paths: ['/fixed/**'] }, limits: [{ algorithm: 'fixedWindow', limit: 3, ...AT_ONCE }] },
    sliding: { match: { paths: ['/sliding/**'] }, limits: [{ algorithm: 'slidingWindow', limit: 3, ...AT_ONCE }] },
    gcra: { match: { paths: ['/gcra/**'] }, limits: [{ algorithm: 'gcra', limit: 6, burst: 3, ...AT_ONCE }] },
    token: {
      match: { paths: ['/token/**'] },
      limits: [{ algorithm: 'tokenBucket', capacity: 3, refill: 4, every: '10s' }],
    },
    leaky: {
      match: { paths: ['/leaky/**'] },
      limits: [{ algorithm: 'leakyBucket', capacity: 3, leak: 4, every: '10s' }],
    },
    several: {
      match: { paths: ['/several/**'] },
      limits: [
        { name: 'short', limit: 2, window: '2s' },
        { name: 'long', limit: 5, window: '20s' },
        { name: 'all', algorithm: 'gcra', limit: 20, window: '10s', key: 'everyone' },
      ],
    },
    // Also of requests that the policy before it admits: its refusals refund that.
    priced: { match: { paths: ['/log/priced'] }, cost: 'pages', limits: [{ limit: 6, ...AT_ONCE }] },
    failures: { match: { paths: ['/failures/**'] }, count: { only: 'failure' }, limits: [{ limit: 3, window: '20s' }] },
    successes: {
      match: { paths: ['/successes/**'] },
      count: { only: 'success', within: '1s' },
      limits: [{ limit: 3, window: '20s' }],
    },
    banned: {
      match: { paths: ['/banned/**'] },
      limits: [{ limit: 2, window: '2s' }],
      ban: { by: 'ip', after: 2, within: '30s', for: ['5s', '10s'], private: true },
    },
    probes: {
      match: { paths: ['/probes/**'] },
      limits: [{ limit: 50, window: '2s' }],
      ban: { by: 'ip', after: 3, within: '30s', for: ['8s'], count: { only: 401 }, private: true },
    },
    tiered: {
      match: { paths: ['/tiered/**'] },
      key: 'user',
      anonymous: 'by-ip',
      tier: 'plan',
      tiers: { free: [{ limit: 2, ...AT_ONCE }], paid: [{ limit: 6, ...AT_ONCE }] },
    },
    keyed: { match: { paths: ['/keyed/**'] }, key: 'user', limits: [{ limit: 3, ...AT_ONCE }] },
    permits: { match: { paths: ['/permits/**'] }, limits: [{ algorithm: 'concurrency', limit: 2 }] },
    delayed: {
      match: { paths: ['/delayed/**'] },
      respond: { delay: { max: '3s' } },
      limits: [{ algorithm: 'gcra', limit: 10, burst: 2, ...AT_ONCE }],
    },
    queued: {
      match: { paths: ['/queued/**'] },
      key: 'everyone',
      respond: { queue: { maxWait: '9s', size: 4 } },
      limits: [{ algorithm: 'gcra', limit: 8, burst: 1, ...AT_ONCE }],
    },
    paced: {
      match: { paths: ['/paced/**'] },
      limits: [{ algorithm: 'leakyBucket', capacity: 4, leak: 20, every: '10s', queue: true }],
    },
    throttled: {
      match: { paths: ['/throttled/**'] },
      key: 'everyone',
      respond: { throttle: { bytesPerSecond: 20_000, after: 5000 } },
      limits: [{ limit: 2, ...AT_ONCE }],
    },
    degraded: { match: { paths: ['/degraded/**'] }, respond: 'degrade', limits: [{ limit: 2, ...AT_ONCE }] },
    watched: {
      match: { paths: ['/log/**', '/watched/**'] },
      enforce: { mode: 'report' },
      limits: [{ limit: 1, ...AT_ONCE }],
    },
    some: { match: { paths: ['/some/**'] }, enforce: { percent: 50 }, limits: [{ limit: 2, ...AT_ONCE }] },
    listed: {
      match: { paths: ['/listed/**'] },
      allow: { ip: ['127.0.1.1'] },
      deny: { ip: ['127.0.1.2'] },
      limits: [{ limit: 2, ...AT_ONCE }],
    },
  },
  overrides: [
    { policy: 'log', key: { ip: '127.0.1.3' }, limits: [{ limit: 6 }] },
    { policy: 'gcra', range: '127.0.1.4/31', limits: [{ limit: 2, burst: 1 }] },
    { policy: 'keyed', prefix: { user: 'vip-' }, limits: [{ limit: 8 }] },
  ],
}

const USERS = [undefined, 'ann', 'bob', 'vip-cem']

/** Seeded visits of six clients to every policy. */
export function visitsFor(seed: number, perPolicy: number): Visit[] {
  const random = mulberry(seed)
  const pick = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
  const visits: Visit[] = []
  for (const [name, { match }] of Object.entries(DOCUMENT.policies)) {
    const path = (match.paths[0] as string).replace('/**', '/page')
    for (let n = 0; n < perPolicy; n++) {
      visits.push({
        at: START_MS + Math.floor(random() * perPolicy * 450),
        ip: `127.0.1.${1 + Math.floor(random() * 5)}`,
        user: pick(USERS),
        tier: pick(['free', 'paid']),
        method: 'GET',
        target: name === 'priced' ? `${path}?n=${Math.floor(random() * 4)}` : path,
        status: pick([200, 200, 200, 401, 404, 500]),
        durationMs: random() < 0.3 ? 0 : Math.floor(random() * 900),
        bytes: pick([0, 200, 30_000]),
      })
    }
  }
  visits.sort((a, b) => a.at - b.at)
  // A log does not show the order of requests that start in the same ms.
  let last = 0
  return visits.map((visit) => {
    last = Math.max(last + 1, visit.at)
    return { ...visit, at: last }
  })
}

const START_MS = Date.UTC(2026, 2, 1)

function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The log that a server would have written of visits, as nginx does, in the order of their ends. */
export const LOG_FORMAT =
  '$remote_addr $msec $request_time "$request" $status $body_bytes_sent "$http_x_user" "$http_x_tier"'

export function logOf(visits: readonly Visit[]): string {
  return [...visits]
    .sort((a, b) => a.at + a.durationMs - b.at - b.durationMs)
    .map(
      ({ at, durationMs, ip, method, target, status, bytes, user = '-', tier }) =>
        `${ip} ${((at + durationMs) / 1000).toFixed(3)} ${(durationMs / 1000).toFixed(3)} "${method} ${target} HTTP/1.1" ${status} ${bytes} "${user}" "${tier}"\n`,
    )
    .join('')
}
