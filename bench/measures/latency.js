// How much later a request goes on that waits for one decision, when nothing else is under way.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { withSpread } from '../report/text.js'

const FLOOR = 'bare round trip'
const OURS = 'sluice, exact log'
const NAMES = [
  FLOOR,
  'empty script',
  'rate-limit-redis',
  'rate-limiter-flexible',
  '@fastify/rate-limit',
  'sluice, fixed window',
  OURS,
]

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size, some }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const { joined, missing } = await joinAll(keep, some(NAMES), server, { limit: 1000, windowMs: 60_000 })
    const turns = await takeTurns(joined, rounds(25), async ({ child }) => {
      return { us: await child.call('latency', { count: size(300, 20), keys: 100 }) }
    })
    const us = new Map([...turns].map(([{ label }, figures]) => [label, figures.us]))
    const floor = us.get(FLOOR) ?? []
    return {
      title: 'One decision in flight',
      text: [
        'The median time of a few hundred decisions, one after the other, in turns; all on one Redis of the same machine.',
      ],
      tables: [
        {
          caption: 'time per decision, µs',
          head: ['', 'median', 'against the bare round trip'],
          rows: [...us].map(([name, times]) => [name, withSpread(spread(times)), withSpread(ratio(times, floor), '×')]),
        },
      ],
      plots: {},
      setups: Object.fromEntries([...us.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      skipped: missing,
      found: { latency: ratio(us.get(OURS) ?? [], floor) },
      raw: Object.fromEntries(us),
    }
  })
