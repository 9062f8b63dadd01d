// The size of bundles of one limiter, and the CPU time of loading the packages in Node.
import { fileURLToPath } from 'node:url'
import { bundle, PROGRAMS } from '../../scripts/lib/bundle.js'
import { run } from '../../scripts/lib/run.js'
import { ratio, spread } from '../lib/stats.js'
import { withSpread } from '../report/text.js'

/** Programs of peers that do the same. */
const PEERS = {
  'express-rate-limit, in memory': `import { rateLimit } from 'express-rate-limit'
app.use(rateLimit({ limit: 100, windowMs: 60_000 }))`,
  'express-rate-limit, on Redis': `import { Redis } from 'ioredis'
import { rateLimit } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
const redis = new Redis()
app.use(rateLimit({ limit: 100, windowMs: 60_000, store: new RedisStore({ sendCommand: (...args) => redis.call(...args) }) }))`,
}

const OURS = 'Sluice for Express'
const PEER = 'express-rate-limit'
/** What `import` loads in Node. */
const LOADED = /** @type {Record<string, string[]>} */ ({
  [OURS]: ['@sluice/express'],
  [PEER]: ['express-rate-limit'],
  'express-rate-limit with rate-limit-redis': ['express-rate-limit', 'rate-limit-redis'],
})

/** @type {import('../run.js').Measure} */
export async function measure({ rounds }) {
  /** @type {[string, number][]} */
  const bytes = []
  for (const [name, program] of Object.entries({ ...PROGRAMS, ...PEERS }))
    bytes.push([name, (await bundle(program)).bytes])
  /** @type {Record<string, number[]>} */
  const cpuMs = Object.fromEntries(Object.keys(LOADED).map((name) => [name, []]))
  // The first round, which is not counted, has the files read from the disk.
  for (let round = 0; round <= rounds(21); round++) {
    for (const [name, packages] of Object.entries(LOADED)) {
      const ms = await loadMs(packages)
      if (round > 0) cpuMs[name]?.push(ms)
    }
  }
  const of = (/** @type {string} */ name) => cpuMs[name] ?? []
  const sizeOf = (/** @type {string} */ name) => kilobytes(bytes.find(([each]) => each === name)?.[1])
  const same = (/** @type {number} */ value) => ({ median: value, low: value, high: value })
  return {
    title: 'Loading',
    text: [
      'Bundles have one limiter of 100 requests a minute, minified by esbuild for Node, without the framework and the client ' +
        `of Redis. CPU time is that of \`import\` in a fresh process, without the framework, in ${rounds(21)} rounds.`,
    ],
    tables: [
      { caption: 'bundles', head: ['', 'kB'], rows: bytes.map(([name, size]) => [name, kilobytes(size).toFixed(0)]) },
      {
        caption: 'import',
        head: ['', 'CPU, ms', `against ${PEER}`],
        rows: Object.entries(cpuMs).map(([name, ms]) => [
          name,
          withSpread(spread(ms)),
          withSpread(ratio(ms, of(PEER)), '×'),
        ]),
      },
    ],
    plots: {},
    found: {
      'bundle-memory': same(sizeOf('Express, in memory')),
      'bundle-redis': same(sizeOf('Express, on Redis')),
      import: ratio(of(OURS), of(PEER)),
    },
    raw: { bytes: Object.fromEntries(bytes), cpuMs },
  }
}

/** @param {number} [bytes] */
const kilobytes = (bytes = Number.NaN) => bytes / 1000

/** @param {string[]} packages */
async function loadMs(packages) {
  const player = fileURLToPath(new URL('../players/loading.js', import.meta.url))
  return Number(await run(process.execPath, [player, ...packages], { quiet: true }))
}
