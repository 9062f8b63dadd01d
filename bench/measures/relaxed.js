// Local counts that are exchanged with Redis, beside leases and beside a decision by Redis for each request.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decideInTurns, flush, joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { figure, withSpread } from '../report/text.js'

const EXACT = 'sluice, sliding window'
const LEASED = 'sluice, sliding window, leases of 100'
const RELAXED = 'sluice, sliding window, relaxed'
const FLOOR = 'no decision'
const NAMES = [EXACT, LEASED, RELAXED, FLOOR]

/** @typedef {{ title: string, load: Omit<import('../lib/loop-turns.js').LoadInTurns, 'ms'> }} Regime */

/** @type {Regime[]} */
const REGIMES = [
  ...[100, 10_000].flatMap((keys) =>
    [10, 100].map((inFlight) => ({
      title: `${figure(keys)} keys, ${inFlight} in flight`,
      load: { keys, inFlight },
    })),
  ),
  ...[100, 1000, 10_000].map((keys) => ({
    title: `${figure(keys)} keys, 20,000 decisions a second`,
    load: { keys, perSecond: 20_000 },
  })),
]

/** @typedef {Record<'perSecond' | 'nodeUs' | 'redisUs' | 'calls', number[]>} Turns */

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const { joined, missing } = await joinAll(keep, NAMES, server, { limit: 1_000_000, windowMs: 60_000 })
    /** @type {Map<string, Map<string, Turns>>} */
    const byRegime = new Map()
    for (const { title, load } of REGIMES) {
      const turns = await takeTurns(joined, rounds(5), async (player) => {
        await flush([server])
        // Until keys are known, leases are taken, and exchanges have begun.
        const { count } = await player.child.call('decideInTurns', { ...load, ms: size(150, 20) })
        return decideInTurns(player, { ...load, first: count, ms: size(400, 30) })
      })
      byRegime.set(title, new Map([...turns].map(([{ label }, figures]) => [label, figures])))
    }
    return {
      title: 'Relaxed counts',
      text: [
        'A sliding window with a limit that is out of reach, keys in turn. Decisions come as requests do, with turns of the ' +
          'event loop: so many as are in flight, all awaited, then a turn; or as many as are due, each millisecond. Exchanges ' +
          'and leases therefore come at their time, which the bench of leases above leaves out. A round is 400 ms, after 150 ms that ' +
          'are not counted. “Node CPU” has the loop and its turns in it: what they take by themselves, the last row of a table says. ' +
          'The last columns compare with relaxed counts, round by round: 2× is twice as much as these take.',
      ],
      tables: [...byRegime].map(([title, turns]) => table(title, turns)),
      plots: {},
      setups: Object.fromEntries(NAMES.map((name) => [name, contestants[name]?.setup ?? ''])),
      skipped: missing,
      raw: Object.fromEntries([...byRegime].map(([title, turns]) => [title, Object.fromEntries(turns)])),
    }
  })

/**
 * @param {string} caption
 * @param {Map<string, Turns>} byName
 * @returns {import('../report/text.js').Table}
 */
function table(caption, byName) {
  const relaxed = byName.get(RELAXED)
  return {
    caption,
    head: ['', 'decisions/s', 'Node CPU µs', 'Redis CPU µs', 'Redis calls per 1,000', 'Node CPU', 'Redis CPU'],
    rows: [...byName].map(([name, { perSecond, nodeUs, redisUs, calls }]) => [
      name,
      withSpread(spread(perSecond)),
      withSpread(spread(nodeUs)),
      name === FLOOR ? '–' : withSpread(spread(redisUs)),
      name === FLOOR ? '–' : withSpread(spread(calls.map((each) => each * 1000))),
      relaxed ? withSpread(ratio(nodeUs, relaxed.nodeUs), '×') : '–',
      relaxed && name !== FLOOR ? withSpread(ratio(redisUs, relaxed.redisUs), '×') : '–',
    ]),
  }
}
