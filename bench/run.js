// `npm run bench`, `npm run bench -- <name> …`: measures, and writes bench/results.json, bench/results.md and bench/plots/.
// Options: --tiny (a rehearsal: the figures mean nothing), --full (ten million keys too), --into <folder>, --no-build.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pnpm } from '../scripts/lib/pnpm.js'
import { whenStarted } from '../scripts/lib/run.js'
import { describeMachine } from './lib/machine.js'
import { render } from './report/page.js'

/**
 * @typedef {object} Effort
 * @property {(usual: number) => number} rounds how many to take
 * @property {(usual: number, tiny: number) => number} size how many of anything else
 * @property {<T>(all: readonly T[]) => T[]} some the first and the last will do for a rehearsal
 * @property {boolean} isFull
 *
 * @typedef {object} Result
 * @property {string} title
 * @property {string[]} text paragraphs
 * @property {import('./report/text.js').Table[]} tables
 * @property {Record<string, string>} plots SVG by name
 * @property {Record<string, string>} [setups] what each contestant is configured to
 * @property {string[]} [skipped] who was left out, and why
 * @property {Record<string, import('./lib/stats.js').Spread & { note?: string }>} [found] for targets
 * @property {unknown} raw every round's figures
 *
 * @typedef {(effort: Effort) => Promise<Result>} Measure
 */

const here = fileURLToPath(new URL('.', import.meta.url))

/** In the order of the report. */
const NAMES = [
  'regimes',
  'decisions',
  'algorithms',
  'latency',
  'flood',
  'lease',
  'charges',
  'relaxed',
  'redis-memory',
  'growth',
  'memory-decisions',
  'memory-bytes',
  'memory-longest',
  'lists',
  'outbound',
  'loading',
  'http',
  'http-clients',
  'http-memory',
  'gateways',
  'simulate',
]

await whenStarted(import.meta.url, async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      tiny: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      build: { type: 'boolean', default: true },
      into: { type: 'string', default: here },
    },
    allowNegative: true,
  })
  const unknown = positionals.find((name) => !NAMES.includes(name))
  if (unknown) throw new Error(`there is no ${unknown}; there are ${NAMES.join(', ')}`)
  // Programs that are started here end with `process.exit`.
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => process.exit(1))
  if (values.build) await pnpm(['exec', 'turbo', 'run', 'build', '--output-logs', 'errors-only'])

  /** @type {Effort} */
  const effort = {
    rounds: (usual) => (values.tiny ? 1 : usual),
    size: (usual, tiny) => (values.tiny ? tiny : usual),
    some: (all) => (values.tiny ? [...all.slice(0, 1), ...all.slice(-1)] : [...all]),
    isFull: values.full,
  }
  const machine = describeMachine()
  const file = join(values.into, 'results.json')
  const results = earlier(file)
  for (const name of NAMES.filter((name) => positionals.length === 0 || positionals.includes(name))) {
    const startedMs = Date.now()
    process.stdout.write(`${name} … `)
    const { measure } = await import(`./measures/${name}.js`)
    const result = await measure(effort)
    const seconds = (Date.now() - startedMs) / 1000
    console.log(`${seconds.toFixed(0)} s`)
    const { plots, ...rest } = result
    mkdirSync(join(values.into, 'plots'), { recursive: true })
    for (const [plot, svg] of Object.entries(plots)) writeFileSync(join(values.into, 'plots', `${plot}.svg`), svg)
    results[name] = { measuredAt: new Date().toISOString(), seconds, machine, plots: Object.keys(plots), ...rest }
    // After each one, so that a run that is stopped leaves its results.
    write(values.into, results)
  }
  console.log(`\n${join(values.into, 'results.md')}`)
})

/** The earlier results, as a run of some measurements leaves the others. @param {string} file @returns {Record<string, any>} */
function earlier(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return {}
  }
}

/**
 * @param {string} folder
 * @param {Record<string, any>} results
 */
function write(folder, results) {
  const sorted = NAMES.filter((name) => results[name]).map((name) => /** @type {const} */ ([name, results[name]]))
  const json = JSON.stringify(Object.fromEntries(sorted), (_, value) => rounded(value), 1)
  // Lists of numbers on one line, so that the file is readable.
  const listed = json.replace(/\[\s*(-?[\d.]+(?:,\s*-?[\d.]+)*)\s*\]/g, (_, list) => `[${list.replace(/\s+/g, ' ')}]`)
  writeFileSync(join(folder, 'results.json'), `${listed}\n`)
  writeFileSync(join(folder, 'results.md'), render(sorted))
}

/** @param {unknown} value */
function rounded(value) {
  return typeof value === 'number' ? Number(value.toPrecision(5)) : value
}
