// Decisions with state in the process.
import { contestants } from '../contestants/memory.js'
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { median, percent, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { barPlot } from '../report/plot.js'
import { withSpread } from '../report/text.js'

const OURS = 'sluice, fixed window'
const FLOOR = 'bare Map, fixed window'

/** @typedef {Record<'perSecond' | 'nodeUs', number[]>} Figures */

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const players = Object.keys(contestants).map((name) => {
      return { name, child: keep(startChild(new URL('../players/memory.js', import.meta.url))) }
    })
    await Promise.all(players.map(({ name, child }) => child.call('join', { name })))
    const few = { keys: size(2000, 20), limit: 1000, count: size(200_000, 400) }
    // A limit so low that no bucket has drained, and been dropped, before its key comes again.
    const many = { keys: size(1_000_000, 2000), limit: 5, count: size(200_000, 400) }
    const byName = byNames(
      await takeTurns(players, rounds(9), async ({ child }) => {
        await child.call('fill', few)
        return child.call('decide', few)
      }),
    )
    // One state of the peers for all rounds, as filling it takes longer than deciding.
    for (const { child } of players) await child.call('fill', many)
    const byNameOfMany = byNames(await takeTurns(players, rounds(5), ({ child }) => child.call('decide', many)))
    const atFew = compared(byName)
    const atMany = compared(byNameOfMany)
    const keys = many.keys.toLocaleString('en')
    return {
      title: 'Decisions with state in memory',
      text: [
        'One decision after the other, each awaited, none refused. The stores of @fastify/rate-limit and the Map ' +
          'answer without a promise; awaiting them costs the same turn of the microtask queue. With few keys all that is ' +
          'held is in the caches of the processor; servers with many clients look like the second table.',
      ],
      tables: [
        tableOf(`${few.keys.toLocaleString('en')} keys`, byName),
        tableOf(`${keys} keys, in an order that jumps about`, byNameOfMany),
      ],
      plots: {
        'memory-decisions': plotOf('Node CPU per decision, µs, state in memory', byName),
        'memory-decisions-many': plotOf(`Node CPU per decision, µs, state in memory, ${keys} keys`, byNameOfMany),
      },
      setups: Object.fromEntries([...byName.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      found: {
        'memory-per-second': {
          ...atFew.peer,
          note: `fixed window; fastest peer: ${atFew.fastest}; by the clock ${withSpread(atFew.peerByClock, '×')}; at ${keys} keys ${withSpread(atMany.peer, '×')}, ${atMany.fastest}`,
        },
        'memory-floor': {
          ...percent(atFew.floor),
          note: `fixed window; by the clock ${withSpread(percent(atFew.floorByClock), ' %')}; at ${keys} keys ${withSpread(percent(atMany.floor), ' %')}`,
        },
      },
      raw: { few: Object.fromEntries(byName), many: Object.fromEntries(byNameOfMany) },
    }
  })

/**
 * @param {Map<{ name: string }, Record<string, number[]>>} turns
 * @returns {Map<string, Figures>}
 */
function byNames(turns) {
  return new Map([...turns].map(([{ name }, figures]) => [name, /** @type {Figures} */ (figures)]))
}

/** Our fixed window against the fastest peer and the floor. @param {Map<string, Figures>} byName */
function compared(byName) {
  const ours = /** @type {Figures} */ (byName.get(OURS))
  const floor = /** @type {Figures} */ (byName.get(FLOOR))
  const [fastest = '', peer = ours] = [...byName]
    .filter(([name]) => contestants[name]?.side === 'peer')
    .reduce((a, b) => (median(a[1].nodeUs) <= median(b[1].nodeUs) ? a : b))
  return {
    fastest,
    peer: ratio(peer.nodeUs, ours.nodeUs),
    peerByClock: ratio(ours.perSecond, peer.perSecond),
    floor: ratio(floor.nodeUs, ours.nodeUs),
    floorByClock: ratio(ours.perSecond, floor.perSecond),
  }
}

/**
 * @param {string} caption
 * @param {Map<string, Figures>} byName
 */
function tableOf(caption, byName) {
  const ours = /** @type {Figures} */ (byName.get(OURS))
  return {
    caption,
    head: ['', 'decisions/s', 'Node CPU µs', 'Node CPU, against our fixed window'],
    rows: [...byName].map(([name, { perSecond, nodeUs }]) => [
      name,
      withSpread(spread(perSecond)),
      withSpread(spread(nodeUs)),
      withSpread(ratio(nodeUs, ours.nodeUs), '×'),
    ]),
  }
}

/**
 * @param {string} title
 * @param {Map<string, Figures>} byName
 */
function plotOf(title, byName) {
  const bars = [...byName].map(([name, { nodeUs }]) => {
    return { name, value: median(nodeUs), side: contestants[name]?.side ?? 'peer' }
  })
  return barPlot(title, bars)
}
