// The longest single operation of a memory store while it grows, is full, and empties.
import { startChild } from '../lib/child.js'
import { barPlot } from '../report/plot.js'
import { figure } from '../report/text.js'

const OPERATIONS = ['decide', 'block', 'unblock', 'reset', 'sweep', 'close']

/** @type {import('../run.js').Measure} */
export async function measure({ rounds, size }) {
  const keys = size(1_000_000, 2000)
  /** @type {Map<string, Record<string, number>>} */
  const byKind = new Map()
  for (const kind of await withPlayer((player) => player.call('kinds'))) {
    byKind.set(kind, await withPlayer((player) => player.call('longest', { kind, keys, rounds: rounds(5) })))
  }
  const longest = (/** @type {[string, Record<string, number>]} */ [, ms]) => Math.max(...Object.values(ms))
  const shown = keys.toLocaleString('en')
  return {
    title: 'The longest operation in memory',
    text: [
      `A store that grows to ${shown} keys, gets a tenth more than it has room for, and empties once all have expired. ` +
        'Every operation is timed by itself and counts with the least it took in five rounds: the garbage collector and ' +
        'other programs interrupt another one each round.',
    ],
    tables: [
      {
        caption: `longest, in ms, at ${shown} keys`,
        head: ['', ...OPERATIONS],
        rows: [...byKind].map(([kind, ms]) => [kind, ...OPERATIONS.map((name) => figure(ms[name] ?? Number.NaN))]),
      },
    ],
    plots: {
      'memory-longest': barPlot(
        `Longest operation of a memory store, ms, ${shown} keys`,
        [...byKind].map((entry) => ({ name: entry[0], value: longest(entry), side: /** @type {const} */ ('ours') })),
      ),
    },
    raw: Object.fromEntries(byKind),
  }
}

/**
 * Runs in a separate process.
 *
 * @template Result
 * @param {(player: import('../lib/child.js').Child) => Promise<Result>} use
 */
async function withPlayer(use) {
  const player = startChild(new URL('../players/memory-longest.js', import.meta.url))
  try {
    return await use(player)
  } finally {
    await player.end()
  }
}
