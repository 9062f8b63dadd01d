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
    const load = { keys: size(2000, 20), limit: 1000, count: size(200_000, 400) }
    const turns = await takeTurns(players, rounds(9), ({ child }) => child.call('decide', load))
    const byName = new Map([...turns].map(([{ name }, figures]) => [name, /** @type {Figures} */ (figures)]))
    const ours = /** @type {Figures} */ (byName.get(OURS))
    const floor = /** @type {Figures} */ (byName.get(FLOOR))
    const [fastest = '', peer] = [...byName]
      .filter(([name]) => contestants[name]?.side === 'peer')
      .reduce((a, b) => (median(a[1].nodeUs) <= median(b[1].nodeUs) ? a : b))
    return {
      title: 'Decisions with state in memory',
      text: [
        `${load.keys.toLocaleString('en')} keys, one decision after the other, each awaited, none refused. The stores of ` +
          '@fastify/rate-limit and the Map answer without a promise; awaiting them costs the same turn of the microtask queue.',
      ],
      tables: [
        {
          caption: 'one decision after the other',
          head: ['', 'decisions/s', 'Node CPU µs', 'Node CPU, against our fixed window'],
          rows: [...byName].map(([name, { perSecond, nodeUs }]) => [
            name,
            withSpread(spread(perSecond)),
            withSpread(spread(nodeUs)),
            withSpread(ratio(nodeUs, ours.nodeUs), '×'),
          ]),
        },
      ],
      plots: {
        'memory-decisions': barPlot(
          'Node CPU per decision, µs, state in memory',
          [...byName].map(([name, { nodeUs }]) => ({
            name,
            value: median(nodeUs),
            side: contestants[name]?.side ?? 'peer',
          })),
        ),
      },
      setups: Object.fromEntries([...byName.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      found: {
        'memory-per-second': {
          ...ratio(peer.nodeUs, ours.nodeUs),
          note: `fixed window; fastest peer: ${fastest}; by the clock ${withSpread(ratio(ours.perSecond, peer.perSecond), '×')}`,
        },
        'memory-floor': {
          ...percent(ratio(floor.nodeUs, ours.nodeUs)),
          note: `fixed window; by the clock ${withSpread(percent(ratio(ours.perSecond, floor.perSecond)), ' %')}`,
        },
      },
      raw: Object.fromEntries(byName),
    }
  })
