// The cost of one of our decisions in Redis and in Node, by algorithm and by the state that it finds.
import { ending } from '../lib/ending.js'
import { decide, flush, join } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { median, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { barPlot } from '../report/plot.js'
import { figure, withSpread } from '../report/text.js'

/** @type {Record<string, import('../players/redis.js').Joining['limits']>} */
const POLICIES = {
  'fixed window': [['fixedWindow', { limit: 1e6, window: '1m' }]],
  gcra: [['gcra', { limit: 1e6, window: '1m' }]],
  'sliding window, two counters': [['slidingWindow', { limit: 1e6, window: '1m' }]],
  'sliding window, strict, 60 segments': [['slidingWindow', { limit: 1e6, window: '1m', edge: 'strict' }]],
  'exact log, filling': [['slidingLog', { limit: 100_000, window: '1h' }]],
  'exact log of 100, entries lapsing': [['slidingLog', { limit: 100, window: '100ms' }]],
  'exact log of 100, refusing': [['slidingLog', { limit: 100, window: '1h' }]],
  'four exact logs on one key': [
    ['slidingLog', { limit: 1000, window: '1s' }],
    ['slidingLog', { limit: 5000, window: '1m' }],
    ['slidingLog', { limit: 20_000, window: '1h' }],
    ['slidingLog', { limit: 100_000, window: '1d' }],
  ],
  'concurrency, never freed': [['concurrency', { limit: 1e5, ttl: '1m' }]],
}

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size, some }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const count = size(16_000, 200)
    const joined = []
    for (const [label, limits] of some(Object.entries(POLICIES)))
      joined.push(keep(await join(label, [server], { limits })))
    const load = { count, inFlight: 100, keys: size(100, 10) }
    const turns = await takeTurns(joined, rounds(5), async (player) => {
      await flush([server])
      // Fills the keys that are to refuse.
      if (player.label.endsWith('refusing')) await player.child.call('fill', { keys: load.keys, cost: 100 })
      return decide([player], load)
    })
    const rows = [...turns].map(([{ label }, figures]) => ({ label, figures }))
    return {
      title: 'Our algorithms',
      text: [
        `100 in flight over ${load.keys} keys, ${count} decisions a turn, so that keys come to hold some entries.`,
      ],
      tables: [
        {
          caption: 'µs per decision',
          head: ['', 'Node CPU', 'commands', 'Redis CPU', 'decisions per Redis call'],
          rows: rows.map(({ label, figures: { nodeUs, commandUs, redisUs, calls } }) => [
            label,
            withSpread(spread(nodeUs)),
            withSpread(spread(commandUs)),
            withSpread(spread(redisUs)),
            figure(1 / median(calls)),
          ]),
        },
      ],
      plots: {
        algorithms: barPlot(
          'Redis CPU per decision, µs, by algorithm',
          rows.map(({ label, figures }) => ({ name: label, value: median(figures.redisUs), side: 'ours' })),
        ),
      },
      raw: Object.fromEntries(rows.map(({ label, figures }) => [label, figures])),
    }
  })
