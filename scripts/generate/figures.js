// Writes the figures of README.md, the comparison and the site's home page from bench/results.json, with the date and the machine.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../../bench/lib/stats.js'
import { root } from '../lib/project.js'
import { withGenerated } from './place.js'

/** @typedef {Record<string, Record<string, number | number[]>>} Contestants */
/** @typedef {{ measuredAt: string, machine: { cpu: string, node: string, redis: string }, raw: any, found?: any }} Measure */

/** @param {number | number[]} value */
const middle = (value) => (Array.isArray(value) ? median(value) : value)
/** @param {number} us */
const microseconds = (us) => `${us < 10 ? us.toFixed(2) : us.toFixed(0)} µs`
/** @param {number} bytes */
const bytes = (bytes) => `${Math.round(bytes).toLocaleString('en')} bytes`

/**
 * A figure of ours beside the best one of the others.
 *
 * @param {Contestants} contestants
 * @param {string} figure
 * @param {(value: number) => string} shown
 * @param {readonly string[]} [others] by default, all that are neither ours nor a floor
 */
function beside(
  contestants,
  figure,
  shown,
  others = Object.keys(contestants).filter((name) => !/^(sluice|bare|empty)/.test(name)),
) {
  const of = (/** @type {string} */ name) => middle(contestants[name]?.[figure] ?? Number.NaN)
  const best = Math.min(...others.map(of))
  return { ours: (/** @type {string} */ algorithm) => shown(of(`sluice, ${algorithm}`)), best: shown(best) }
}

/** @param {Record<string, Measure>} results by name */
function read({ decisions, latency, 'redis-memory': inRedis, 'memory-decisions': inMemory, 'memory-bytes': inNode }) {
  if (!(decisions && latency && inRedis && inMemory && inNode)) throw new Error('bench/results.json lacks a measure')
  const cpu = (/** @type {Contestants} */ contestants, figure = 'nodeUs') => beside(contestants, figure, microseconds)
  const keys = Object.entries(inNode.raw).map(([name, figure]) => [name, { bytes: figure }])
  const used = [decisions, latency, inRedis, inMemory, inNode]
  const machines = new Set(used.map(({ machine: m }) => `${m.cpu}, Node ${m.node.slice(1)}, Redis ${m.redis}`))
  const days = new Set(used.map(({ measuredAt }) => measuredAt.slice(0, 10)))
  return {
    busy: { node: cpu(decisions.raw[100]), redis: cpu(decisions.raw[100], 'redisUs') },
    idle: { node: cpu(decisions.raw[1]), redis: cpu(decisions.raw[1], 'redisUs') },
    logs: beside(inRedis.raw, 'full', bytes, ['async-ratelimiter, koa-ratelimit', 'rolling-rate-limiter']),
    counters: beside(inRedis.raw, 'full', bytes),
    few: cpu(inMemory.raw.few),
    many: cpu(inMemory.raw.many),
    keys: beside(Object.fromEntries(keys), 'bytes', bytes),
    when: `${[...days].sort().join(' and ')} on ${[...machines].join(' and ')}, everything on one machine`,
    slower: latency.found.latency.median.toFixed(2),
  }
}

const LOG = 'exact log'
const FIXED = 'fixed window'

/** @param {ReturnType<typeof read>} figures */
const forComparison = ({ busy, idle, logs, counters, few, many, keys, when, slower }) => `Medians of ${when}.
Lower is better. "Best other" is the best of the other measured limiters. A limiter that is faster with auto-pipelining
was measured with it. [Benchmarks](../bench/results.md) has each round.

| measure | load | Sluice, exact log | best other |
|---|---|---|---|
| Node CPU per Redis decision | 100 in flight | ${busy.node.ours(LOG)} | ${busy.node.best} |
| | 1 in flight | ${idle.node.ours(LOG)} | ${idle.node.best} |
| Redis CPU per decision | 100 in flight | ${busy.redis.ours(LOG)} | ${busy.redis.best} |
| | 1 in flight | ${idle.redis.ours(LOG)} | ${idle.redis.best} |
| Redis memory of a key | 60 entries of an exact log | ${logs.ours(LOG)} | ${logs.best} |
| | a fixed window | ${counters.ours(FIXED)} | ${counters.best} |
| CPU per decision in memory | 2,000 keys | ${few.ours(LOG)} (fixed window ${few.ours(FIXED)}) | ${few.best} |
| | a million keys | ${many.ours(LOG)} (fixed window ${many.ours(FIXED)}) | ${many.best} |
| memory of a key in Node | a million keys | ${keys.ours(LOG)} | ${keys.best} |

Sluice is fast under load, because one command to Redis then carries about fifty decisions. On an idle server, a single
decision takes ${slower} times as long as a bare round trip to Redis. [What is left](../bench/what-is-left.md) lists
the targets that are missed.
`

/** @param {ReturnType<typeof read>} figures */
const forReadme = ({ idle, counters, few }) => `| where others win | Sluice | best other |
|---|---|---|
| CPU per decision in memory, 2,000 keys | ${few.ours(LOG)} | ${few.best} |
| Node CPU per decision on Redis, one in flight | ${idle.node.ours(LOG)} | ${idle.node.best} |
| Redis memory of a key, a fixed window | ${counters.ours(FIXED)} | ${counters.best} |
| stores | memory, Redis | also SQL, MongoDB, Memcached (rate-limiter-flexible) |
`

/** @param {ReturnType<typeof read>} figures */
const forHome = ({ busy, idle, logs, few, when }) => `| | Sluice, exact log | best other |
|---|---|---|
| CPU of Node for a decision on Redis, 100 in flight | ${busy.node.ours(LOG)} | ${busy.node.best} |
| the same, one in flight | ${idle.node.ours(LOG)} | ${idle.node.best} |
| memory in Redis for a log of 60 requests | ${logs.ours(LOG)} | ${logs.best} |
| CPU of Node for a decision in memory, 2,000 keys | ${few.ours(LOG)} | ${few.best} |

Medians of ${when}.
[Benchmarks](../bench/results.md) has each round and each limiter. The targets that are missed are in
[what is left](../bench/what-is-left.md).
`

export function make() {
  const figures = read(JSON.parse(readFileSync(join(root, 'bench/results.json'), 'utf8')))
  const pages = { 'README.md': forReadme, 'docs/comparison.md': forComparison, 'docs/index.md': forHome }
  return Object.fromEntries(
    Object.entries(pages).map(([file, text]) => [file, withGenerated(file, 'figures', text(figures))]),
  )
}
