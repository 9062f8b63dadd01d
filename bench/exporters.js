// `node bench/exporters.js`: the CPU time that @sluice/prometheus and @sluice/otel add to a decision, in µs. Needs a build.
// A round is a fresh process without an exporter, and one with each. Options: --rounds <n>, --count <decisions>.
import { parseArgs } from 'node:util'
import { whenStarted } from '../scripts/lib/run.js'
import { startChild } from './lib/child.js'
import { ending } from './lib/ending.js'
import { median, medianInterval } from './lib/stats.js'

const EXPORTERS = /** @type {const} */ (['none', 'prometheus', 'otel'])

/** @param {string} exporter @param {number} count @returns {Promise<number>} */
const cost = (exporter, count) =>
  ending((keep) =>
    keep(startChild(new URL('./players/exporters.js', import.meta.url))).call('cost', { exporter, count }),
  )

await whenStarted(import.meta.url, async () => {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '7' }, count: { type: 'string', default: '600000' } },
  })
  /** @type {Record<string, number[]>} */
  const costs = { none: [], prometheus: [], otel: [] }
  for (let round = 0; round < Number(values.rounds); round++) {
    // Another exporter goes first each time.
    for (let i = 0; i < EXPORTERS.length; i++) {
      const exporter = /** @type {string} */ (EXPORTERS[(round + i) % EXPORTERS.length])
      costs[exporter]?.push(await cost(exporter, Number(values.count)))
    }
  }
  console.log('| exporter | µs per decision | more than without | 95 % interval |\n|---|---|---|---|')
  for (const exporter of EXPORTERS) {
    const all = costs[exporter] ?? []
    const more = all.map((each, round) => each - (costs.none?.[round] ?? Number.NaN))
    const { low, high } = medianInterval(more)
    const figures = [median(all), median(more)].map((figure) => figure.toFixed(2))
    console.log(`| ${[exporter, ...figures, `${low.toFixed(2)} to ${high.toFixed(2)}`].join(' | ')} |`)
  }
})
