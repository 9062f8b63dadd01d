// What `sluice simulate` plays a second, and the memory that a million clients take.
import { startChild } from '../lib/child.js'
import { spread } from '../lib/stats.js'
import { figure, withSpread } from '../report/text.js'

/** @typedef {{ perSecond: number, us: number, rssMb: number, clients: number }} Played */

const LIMIT = { algorithm: 'gcra', limit: 100, window: '1m' }

/** @type {import('../run.js').Measure} */
export async function measure({ size, rounds }) {
  const cases = [
    {
      name: 'replay, table and timeline',
      lines: size(10_000_000, 20_000),
      clients: size(1_000_000, 1000),
      curve: false,
    },
    { name: 'the same, 10,000 clients', lines: size(10_000_000, 20_000), clients: size(10_000, 100), curve: false },
    { name: 'with the curve', lines: size(2_000_000, 5000), clients: size(1_000_000, 1000), curve: true },
  ]
  /** @type {Map<string, Played[]>} */
  const played = new Map(cases.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds(3); round++) {
    for (const { name, ...of } of cases) played.get(name)?.push(await inFreshProcess({ ...of, limit: LIMIT }))
  }
  const of = (/** @type {string} */ name) => played.get(name) ?? []
  const [whole, , curve] = cases
  return {
    title: 'Replay of a log',
    text: [
      'Generated lines of the combined format, through a pipe from a process of its own, by one policy: `gcra({ limit: 100, ' +
        "window: '1m' })`. A few clients send most of the requests. The process is fresh, and reads in a thread of its own: its " +
        'CPU is that of both. RSS is its largest.',
    ],
    tables: [
      {
        caption: 'lines a second, CPU and memory',
        head: ['', 'lines', 'clients', 'lines/s', 'CPU µs per line', 'RSS, MB'],
        rows: cases.map(({ name, lines }) => [
          name,
          lines.toLocaleString('en'),
          figure(of(name)[0]?.clients ?? Number.NaN),
          .../** @type {const} */ (['perSecond', 'us', 'rssMb']).map((each) =>
            withSpread(spread(of(name).map((one) => one[each]))),
          ),
        ]),
      },
    ],
    plots: {},
    found: {
      'simulate-lines': spread(of(whole?.name ?? '').map(({ perSecond }) => perSecond)),
      'simulate-curve': spread(of(curve?.name ?? '').map(({ perSecond }) => perSecond)),
      'simulate-rss': spread(of(whole?.name ?? '').map(({ rssMb }) => rssMb)),
    },
    raw: Object.fromEntries(played),
  }
}

/**
 * @param {object} params
 * @returns {Promise<Played>}
 */
async function inFreshProcess(params) {
  const child = startChild(new URL('../players/simulate.js', import.meta.url), ['--heap-growing-percent=20'])
  try {
    return await child.call('play', params)
  } finally {
    await child.end()
  }
}
