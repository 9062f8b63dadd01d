// The memory that a million keys take in a Node process.
import { contestants } from '../contestants/memory.js'
import { startChild } from '../lib/child.js'
import { barPlot } from '../report/plot.js'
import { figure } from '../report/text.js'

const OURS = 'sluice, fixed window'

/** @type {import('../run.js').Measure} */
export async function measure({ size }) {
  const keys = size(1_000_000, 2000)
  /** @type {Map<string, number>} */
  const bytes = new Map()
  for (const name of Object.keys(contestants)) bytes.set(name, await inFreshProcess(name, keys))
  const of = (/** @type {string} */ name) => bytes.get(name) ?? Number.NaN
  const peers = [...bytes.keys()].filter((name) => contestants[name]?.side === 'peer')
  const leanest = peers.reduce((a, b) => (of(a) <= of(b) ? a : b))
  const ratio = of(OURS) / of(leanest)
  return {
    title: 'Memory in Node',
    text: [
      `${keys.toLocaleString('en')} keys with one decision each, in a fresh process; heap and buffers after garbage ` +
        'collection, the keys themselves included.',
    ],
    tables: [
      {
        caption: 'bytes per key',
        head: ['', 'bytes', 'against the leanest peer'],
        rows: [...bytes].map(([name, measured]) => [name, figure(measured), `${figure(of(name) / of(leanest))}×`]),
      },
    ],
    plots: {
      'memory-bytes': barPlot(
        `Bytes per key in Node, ${keys.toLocaleString('en')} keys`,
        [...bytes.keys()].map((name) => ({ name, value: of(name), side: contestants[name]?.side ?? 'peer' })),
      ),
    },
    setups: Object.fromEntries([...bytes.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
    found: {
      'memory-bytes': { median: ratio, low: ratio, high: ratio, note: `fixed window; leanest peer: ${leanest}` },
    },
    raw: Object.fromEntries(bytes),
  }
}

/**
 * @param {string} name
 * @param {number} keys
 * @returns {Promise<number>}
 */
async function inFreshProcess(name, keys) {
  const child = startChild(new URL('../players/memory.js', import.meta.url), ['--expose-gc'])
  try {
    await child.call('join', { name })
    return await child.call('bytesPerKey', { keys })
  } finally {
    await child.end()
  }
}
