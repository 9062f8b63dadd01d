// The decisions of each algorithm on some traffic, by the real kernels, on a memory store whose clock is ours.

/** @typedef {typeof import('../../packages/core/src/index.js')} Core */
/**
 * @typedef {{ atMs: number, allowed: boolean, leavesMs: number }} Decision `leavesMs`: when it is admitted, later than its
 * arrival where it had to wait
 */
/** @typedef {{ name: string, note: string, make: (core: Core) => import('../../packages/core/src/index.js').Limit<string> }} Algorithm */

export const LIMIT = 10
const WINDOW_MS = 10_000
/** Windows by the clock start at multiples of their length: so does our time. */
const EPOCH_MS = Date.UTC(2026, 0, 1)

const rate = { limit: LIMIT, window: WINDOW_MS }

/** @type {readonly Algorithm[]} */
export const ALGORITHMS = [
  { name: 'slidingLog', note: 'exact; the default', make: (core) => core.slidingLog(rate) },
  {
    name: 'slidingWindow, strict',
    note: '50 segments',
    make: (core) => core.slidingWindow({ ...rate, edge: 'strict', segments: 50 }),
  },
  { name: 'slidingWindow', note: 'weighted: two counters', make: (core) => core.slidingWindow(rate) },
  {
    name: 'slidingWindow, dropped',
    note: '50 segments',
    make: (core) => core.slidingWindow({ ...rate, edge: 'dropped', segments: 50 }),
  },
  { name: 'fixedWindow', note: 'by the clock', make: (core) => core.fixedWindow(rate) },
  {
    name: 'fixedWindow',
    note: 'from the first request',
    make: (core) => core.fixedWindow({ ...rate, anchor: 'first-request' }),
  },
  { name: 'gcra', note: 'and tokenBucket, leakyBucket', make: (core) => core.gcra(rate) },
  {
    name: 'tokenBucket, interval',
    note: 'refilled by the clock',
    make: (core) => core.tokenBucket({ refill: LIMIT, every: WINDOW_MS, style: 'interval' }),
  },
  {
    name: 'leakyBucket, queue',
    note: 'spaced out, 1 s apart',
    make: (core) => core.leakyBucket({ leak: LIMIT, every: WINDOW_MS, queue: true }),
  },
]

/**
 * @param {number} atMs
 * @param {number} count requests at that instant
 */
const times = (atMs, count) => Array.from({ length: count }, () => atMs)

/** Times of arrival of requests, in ms. */
export const SCENARIOS = [
  {
    file: 'burst',
    title: 'Bursts of 20 at once, at 2 s, 7 s, 13 s and 18 s',
    lengthMs: 24_000,
    arrivals: [2000, 7000, 13_000, 18_000].flatMap((atMs) => times(atMs, 20)),
  },
  {
    file: 'overload',
    title: 'Twice the limit, steadily: a request each 500 ms',
    lengthMs: 40_000,
    arrivals: Array.from({ length: 80 }, (_, n) => 250 + n * 500),
  },
  {
    file: 'boundary',
    title: 'The boundary attack: 1 at 0 s, 9 at 9.8 s, 10 at 10.2 s',
    lengthMs: 24_000,
    arrivals: [...times(0, 1), ...times(9800, 9), ...times(10_200, 10)],
  },
]

/**
 * Decides on requests one after the other.
 *
 * @param {Core} core
 * @param {Algorithm} algorithm
 * @param {readonly number[]} arrivals in order
 * @returns {Promise<Decision[]>}
 */
export async function decide(core, { make }, arrivals) {
  let now = 0
  const store = core.memoryStore({ clock: () => EPOCH_MS + now })
  const limiter = core.createLimiter({ store, limits: [make(core)] })
  const decisions = []
  for (const atMs of arrivals) {
    now = atMs
    const { allowed, delayMs } = await limiter.consume('client')
    decisions.push({ atMs, allowed, leavesMs: atMs + delayMs })
  }
  await store.close()
  return decisions
}

/**
 * The number of admissions in the window before each moment at which it changes.
 *
 * @param {readonly Decision[]} decisions
 * @returns {{ atMs: number, count: number }[]} in order
 */
export function inWindow(decisions) {
  const leaves = decisions.filter(({ allowed }) => allowed).map(({ leavesMs }) => leavesMs)
  const moments = [...new Set(leaves.flatMap((ms) => [ms, ms + WINDOW_MS]))].sort((a, b) => a - b)
  return moments.map((atMs) => ({ atMs, count: leaves.filter((ms) => ms <= atMs && ms > atMs - WINDOW_MS).length }))
}

/** @param {readonly Decision[]} decisions */
export const maxInWindow = (decisions) => Math.max(0, ...inWindow(decisions).map(({ count }) => count))

/**
 * The most units admitted in any window under the worst clients. Some open a window early. All keep silent until a bad moment
 * and then send a request every few ms.
 *
 * @param {Core} core
 * @param {Algorithm} algorithm
 */
export async function worst(core, algorithm) {
  let most = 0
  for (const fromMs of [0, 199, 5000, 9999]) {
    for (const opens of [false, true]) {
      const hammering = Array.from({ length: 1200 }, (_, n) => times(fromMs + 25 * n, n === 0 ? 20 : 1)).flat()
      const after = Array.from({ length: 3 }, (_, n) => times(10_000 * (n + 1), 20)).flat()
      const arrivals = [...(opens ? [0] : []), ...hammering, ...after].sort((a, b) => a - b)
      most = Math.max(most, maxInWindow(await decide(core, algorithm, arrivals)))
    }
  }
  return most
}
