// The delay of a request that waits for one decision, without other load.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { withSpread } from '../report/text.js'

const OURS = 'sluice, exact log'
const NAMES = [
  'bare round trip',
  'empty script',
  'rate-limit-redis',
  'rate-limiter-flexible',
  '@fastify/rate-limit',
  'sluice, fixed window',
  OURS,
]

/** @typedef {Record<'us' | 'pingUs', number[]>} Figures */

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size, some }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    /** @type {Map<string, Figures>} */
    const found = new Map()
    /** @type {string[]} */
    let skipped = []
    // Some processes are faster than others for their whole life, so there are several of each.
    for (let life = 0; life < rounds(3); life++) {
      await ending(async (keepPlayer) => {
        const { joined, missing } = await joinAll(keepPlayer, some(NAMES), server, { limit: 1000, windowMs: 60_000 })
        skipped = missing
        const turns = await takeTurns(joined, rounds(8), async ({ child }) => {
          await server.admin.flushall()
          const { us, pingUs } = await child.call('latency', { count: size(500, 20), keys: 100 })
          return { us, pingUs }
        })
        for (const [{ label }, { us, pingUs }] of turns) {
          const { us: earlier = [], pingUs: earlierPings = [] } = found.get(label) ?? {}
          found.set(label, { us: [...earlier, ...us], pingUs: [...earlierPings, ...pingUs] })
        }
      })
    }
    const against = ({ us, pingUs } = /** @type {Figures} */ (found.get(OURS))) => ratio(us, pingUs)
    return {
      title: 'One decision in flight',
      text: [
        'The median time of five hundred decisions, one after the other, and of as many PINGs of the same process between ' +
          'them; all on one Redis of the same machine.',
      ],
      tables: [
        {
          caption: 'time per decision, µs',
          head: ['', 'median', 'a PING between', 'against that'],
          rows: [...found].map(([name, figures]) => [
            name,
            withSpread(spread(figures.us)),
            withSpread(spread(figures.pingUs)),
            withSpread(against(figures), '×'),
          ]),
        },
      ],
      plots: {},
      setups: Object.fromEntries([...found.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      skipped,
      found: { latency: against() },
      raw: Object.fromEntries(found),
    }
  })
