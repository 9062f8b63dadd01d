// Units taken from Redis a hundred at a time, and spent in this process.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decide, flush, joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { median, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { figure, withSpread } from '../report/text.js'

const BATCHED = 'sluice, exact log'
const LEASED = 'sluice, exact log, leases of 100'

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const { joined, missing } = await joinAll(keep, [BATCHED, LEASED], server, { limit: 1_000_000, windowMs: 60_000 })
    const turns = await takeTurns(joined, rounds(7), async (player) => {
      await flush([server])
      return decide([player], { count: size(1_000_000, 500), inFlight: 100, keys: 100, prepared: true })
    })
    const byName = new Map([...turns].map(([{ label }, figures]) => [label, figures]))
    return {
      title: 'Leases',
      text: [
        'An exact log with a limit that is out of reach, a hundred keys in turn, 100 in flight. A decision from a ' +
          'lease takes a fraction of a µs, so a round is a million decisions on either path, long after everything is ' +
          'compiled, and keys are made before. There is no turn of the event loop between decisions: a lease that is used up ' +
          'is not taken anew until all 100 wait for one.',
      ],
      tables: [
        {
          caption: 'with and without leases',
          head: ['', 'decisions/s', 'Node CPU µs', 'Redis CPU µs', 'decisions per Redis call'],
          rows: [...byName].map(([name, { perSecond, nodeUs, redisUs, calls }]) => [
            name,
            withSpread(spread(perSecond)),
            withSpread(spread(nodeUs)),
            withSpread(spread(redisUs)),
            figure(1 / median(calls)),
          ]),
        },
      ],
      plots: {},
      setups: Object.fromEntries([...byName.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      skipped: missing,
      found: compare(byName.get(LEASED), byName.get(BATCHED)),
      raw: Object.fromEntries(byName),
    }
  })

/**
 * @param {Record<'perSecond' | 'calls', number[]>} [leased]
 * @param {Record<'perSecond', number[]>} [batched]
 * @returns {import('../run.js').Result['found']}
 */
function compare(leased, batched) {
  if (!leased || !batched) return {}
  return {
    'lease-per-second': ratio(leased.perSecond, batched.perSecond),
    'lease-calls': spread(leased.calls.map((calls) => 1 / calls)),
  }
}
