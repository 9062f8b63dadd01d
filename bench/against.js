// `npm run bench:against -- <folder>`: this checkout against another one (an earlier commit, built), in turns.
// A pair is one fresh process of each; which of them goes first alternates. A figure is the CPU time of a decision or a
// request, in Node or in all Redis servers, this checkout's divided by the other's: 1.02 is two percent more.
// Options: --pairs <n>, and names of rows.
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { whenStarted } from '../scripts/lib/run.js'
import { startChild } from './lib/child.js'
import { ending } from './lib/ending.js'
import { startCluster, startRedis } from './lib/redis.js'
import { httpRow, pathsRow, redisRow, waitersRow } from './lib/rows.js'
import { median, medianInterval } from './lib/stats.js'

/** @typedef {import('./players/redis-policy.js').WrittenLimit} WrittenLimit */

/** @type {WrittenLimit} */
const LOG = ['slidingLog', { limit: 100, window: '1m' }]
/** @type {WrittenLimit} */
const GCRA = ['gcra', { limit: 100, window: '1m' }]
const WINDOWS = ['1m', '10m', '1h', '1d']
const LEASE = { size: 100, ttl: '1s' }
/** A limit that is out of reach, for rows that run for some time. */
const MANY = { limit: 1_000_000, window: '1h' }
const BAN = { after: 2, within: '10m', for: ['10m', '1h'] }

/** Few in flight and many keys, as most users have. */
const USUAL = { inFlight: 10, keys: 10_000 }
/** As many decisions as take a second: shorter bursts vary by more than what is looked for. */
const BUSY = { inFlight: 100, keys: 10_000, count: 300_000 }
/** The same load per ms on any machine, as leases and exchanges depend on time. */
const BY_TIME = { perSecond: 20_000, keys: 10_000, isZipf: true, inTurnsMs: 2000 }

/** @type {import('./lib/rows.js').Row[]} */
const ROWS = [
  redisRow('exact log', { limits: [LOG], inFlight: 100, keys: 400 }),
  redisRow('exact log', { limits: [LOG], inFlight: 1, keys: 10_000, count: 3000 }),
  redisRow('exact log', { limits: [LOG], ...BUSY }),
  redisRow('exact log, refused', {
    limits: [['slidingLog', { limit: 1, window: '1h' }]],
    refuses: true,
    ...USUAL,
    keys: 400,
    // A refusal that is known takes so little that fewer would measure the compiler of V8.
    count: 500_000,
  }),
  redisRow('gcra', { limits: [GCRA], ...BUSY }),
  redisRow('gcra with 1000 blocks', { limits: [GCRA], blocks: 1000, ...BUSY }),
  redisRow('exact log', { limits: [LOG], onCluster: true, ...USUAL }),
  redisRow('four exact logs', { limits: WINDOWS.map((window) => ['slidingLog', { limit: 100, window }]), ...USUAL }),
  redisRow('four gcra', { limits: WINDOWS.map((window) => ['gcra', { limit: 100, window }]), ...USUAL }),
  redisRow('gcra with ban', {
    limits: [['gcra', { limit: 2, window: '1h' }]],
    policy: { ban: BAN },
    refuses: true,
    ...USUAL,
    count: 50_000,
  }),
  // Each key has one charge, and then strikes, too few of them for a ban.
  redisRow('gcra with ban, all strike', {
    limits: [['gcra', { limit: 1, window: '1h' }]],
    policy: { ban: { ...BAN, after: 30 } },
    refuses: true,
    inFlight: 1,
    keys: 400,
    count: 10_000,
  }),
  redisRow('gcra with sharedTurns', { limits: [GCRA], policy: { sharedTurns: true }, ...USUAL }),
  redisRow('gcra with sharedTurns, another waits', {
    limits: [GCRA],
    policy: { sharedTurns: true },
    anotherWaits: true,
    inFlight: 1,
    keys: 10_000,
    count: 10_000,
  }),
  redisRow('gcra with sharedTurns, all wait', {
    limits: [['gcra', { limit: 100, window: '1s', burst: 1 }]],
    policy: { sharedTurns: true },
    waits: true,
    inFlight: 100,
    keys: 20,
    count: 3000,
  }),
  redisRow('exact log with lease', { limits: [['slidingLog', { ...MANY, lease: LEASE }]], ...BY_TIME }),
  redisRow('sliding window with consistency', {
    limits: [['slidingWindow', MANY]],
    policy: { consistency: { syncEvery: '100ms' } },
    ...BY_TIME,
  }),
  .../** @type {const} */ (['Fastify', 'Koa', 'Express']).flatMap((framework) => [
    httpRow(framework, 'memory'),
    httpRow(framework, 'redis'),
  ]),
  pathsRow('plain'),
  pathsRow('odd'),
  waitersRow('first come, first served', 0),
  waitersRow('clients in turn', 100),
]

/** @param {readonly string[]} wanted parts of names; none for all */
function rowsOf(wanted) {
  const unknown = wanted.find((part) => !ROWS.some(({ name }) => name.includes(part)))
  if (unknown !== undefined) {
    const names = ROWS.map(({ name }) => name).join('\n')
    throw new Error(`no row has ${JSON.stringify(unknown)} in its name; there are:\n${names}`)
  }
  return ROWS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
}

/** @template T @param {() => T} make @returns {() => T} which makes the value on its first call */
function once(make) {
  /** @type {{ value: T } | undefined} */
  let made
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/**
 * Lines of the table: each figure of a row in a line of its own.
 *
 * @param {string} name
 * @param {import('./lib/rows.js').Costs[][]} pairs
 */
function linesOf(name, pairs) {
  return Object.keys(pairs[0]?.[0] ?? {}).map((figure) => {
    const both = pairs.map((pair) => pair.map((costs) => costs[figure] ?? Number.NaN))
    const at = (/** @type {number} */ side) => median(both.map((pair) => pair[side] ?? Number.NaN)).toFixed(2)
    const ratios = both.map(([ours = Number.NaN, theirs = Number.NaN]) => ours / theirs)
    const { low, high } = medianInterval(ratios)
    const interval = `${low.toFixed(3)} to ${high.toFixed(3)}`
    return `| ${[name, figure, at(0), at(1), median(ratios).toFixed(3), interval, ratios.length].join(' | ')} |`
  })
}

await whenStarted(import.meta.url, async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { pairs: { type: 'string', default: '15' } },
  })
  const [folder, ...wanted] = positionals
  if (folder === undefined) throw new Error('usage: npm run bench:against -- <folder of another checkout> [rows …]')
  const here = fileURLToPath(new URL('.', import.meta.url))
  const there = join(resolve(folder), 'bench/')
  const rows = rowsOf(wanted)
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => process.exit(1))

  await ending(async (keep) => {
    const shared = {
      redis: once(async () => keep(await startRedis())),
      cluster: once(() => startCluster(keep, 3)),
      loader: once(async () => keep(startChild(new URL('./players/http-load.js', import.meta.url)))),
    }
    /** @param {import('./lib/rows.js').Row} row @param {string | undefined} bench */
    const costs = ({ costsUs }, bench) =>
      ending((keep) => {
        const at = pathToFileURL(/** @type {string} */ (bench))
        const player = (/** @type {string} */ name) => new URL(`players/${name}.js`, at)
        return costsUs(keep, { ...shared, player, build: new URL('..', at).href })
      })

    console.log(
      '| row | figure | this, µs | other, µs | ratio | 95 % interval | pairs |\n|---|---|---|---|---|---|---|',
    )
    for (const row of rows) {
      const pairs = []
      for (let i = 0; i < Number(values.pairs); i++) {
        const order = i % 2 === 0 ? [here, there] : [there, here]
        const pair = [await costs(row, order[0]), await costs(row, order[1])]
        pairs.push(i % 2 === 0 ? pair : pair.reverse())
      }
      for (const line of linesOf(row.name, pairs)) console.log(line)
    }
  })
})
