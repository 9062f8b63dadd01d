// Lists of address ranges: the cost of a look-up, of loading, and of memory.
import { startChild } from '../lib/child.js'
import { spread } from '../lib/stats.js'
import { figure, withSpread } from '../report/text.js'

/** @type {import('../run.js').Measure} */
export async function measure({ rounds, size, some }) {
  /** @type {Record<string, { loadMs: number[], heldMs: number, bytes: number, nsIPv4: number, nsIPv6: number }>} */
  const bySize = {}
  for (const ranges of some([10_000, 100_000, 1_000_000]).map((usual) => size(usual, usual / 1000))) {
    bySize[ranges] = await withPlayer((player) => player.call('measure', { ranges, rounds: rounds(7) }))
  }
  const ofNode = await withPlayer((player) => player.call('ofNode', { ranges: size(10_000, 10) }))
  const middle = bySize[size(100_000, 100)] ?? Object.values(bySize)[0]
  const lookUpNs = middle ? Math.max(middle.nsIPv4, middle.nsIPv6) : Number.NaN
  return {
    title: 'Lists of ranges',
    text: [
      'IPv4 and IPv6 in equal parts; networks, single addresses, and ranges from one address to another, which overlap. ' +
        'Read from a file by `fileList`, in a thread of its own. "Loop held" is the longest turn of the event loop meanwhile: ' +
        'the least of all rounds, as other programs hold another turn each round. A look-up begins with the address as text, ' +
        `half of them in a range. Node's own BlockList takes ${figure(ofNode / 1000)} µs at 10,000 networks.`,
    ],
    tables: [
      {
        caption: 'by number of ranges',
        head: ['ranges', 'look-up IPv4, ns', 'look-up IPv6, ns', 'load, ms', 'loop held, ms', 'memory, MB'],
        rows: Object.entries(bySize).map(([ranges, { loadMs, heldMs, bytes, nsIPv4, nsIPv6 }]) => [
          Number(ranges).toLocaleString('en'),
          figure(nsIPv4),
          figure(nsIPv6),
          withSpread(spread(loadMs)),
          figure(heldMs),
          figure(bytes / 1e6),
        ]),
      },
    ],
    plots: {},
    found: {
      'list-look-up': { median: lookUpNs / 1000, low: lookUpNs / 1000, high: lookUpNs / 1000 },
      'list-loop': {
        median: middle?.heldMs ?? Number.NaN,
        low: middle?.heldMs ?? Number.NaN,
        high: middle?.heldMs ?? Number.NaN,
      },
    },
    raw: { bySize, ofNode },
  }
}

/**
 * Runs in a separate process.
 *
 * @template Result
 * @param {(player: import('../lib/child.js').Child) => Promise<Result>} use
 */
async function withPlayer(use) {
  const player = startChild(new URL('../players/lists.js', import.meta.url), ['--expose-gc'])
  try {
    return await use(player)
  } finally {
    await player.end()
  }
}
