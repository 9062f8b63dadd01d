// Tries every mutant of the Lua on a real Redis: npm run mutate [-- <text> …]
// With texts, only mutants whose names contain them all, such as cells/log or '<= to <'.
// Fails unless those that survive are exactly those that test/deep/mutation/survivors.json gives a reason for.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'

/** @typedef {{ id: string, file: string, line: number, change: string, by?: string, failure: string, tookMs: number }} Outcome */

/** Processes at once, each with a Redis of its own. */
const PROCESSES = 2

await whenStarted(import.meta.url, async () => {
  const wanted = process.argv.slice(2)
  const startedMs = Date.now()
  console.log(`Trying ${wanted.length > 0 ? 'some' : 'all'} mutants; all of them take an hour or more …`)
  const outcomes = await tryMutants(wanted)
  for (const outcome of outcomes) console.log(tableRow(outcome))

  const survivors = outcomes.filter(({ by }) => by === undefined)
  const seconds = Math.round((Date.now() - startedMs) / 1000)
  console.log(`\n${outcomes.length} mutants, ${survivors.length} survived, in ${seconds} s.`)
  const problems = differences(outcomes, knownSurvivors(), wanted.length > 0)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  console.log('They are those that are known, each with a reason: test/deep/mutation/survivors.json')
})

/**
 * @param {string[]} wanted
 * @returns {Promise<Outcome[]>} in the order of files and lines
 */
async function tryMutants(wanted) {
  const folder = join(root, '.tmp/mutation')
  mkdirSync(folder, { recursive: true })
  const parts = Array.from({ length: PROCESSES }, async (_, i) => {
    const report = join(folder, `${i + 1}.json`)
    writeFileSync(report, '')
    await run('vitest', ['run', '--root', 'test/deep/mutation'], {
      env: { SLUICE_MUTANTS: JSON.stringify([`${i + 1}/${PROCESSES}`, ...wanted]), SLUICE_MUTANTS_REPORT: report },
      quiet: true,
    })
    const lines = readFileSync(report, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    return lines.map((line) => /** @type {Outcome} */ (JSON.parse(line)))
  })
  const outcomes = (await Promise.all(parts)).flat()
  return outcomes.sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line))
}

/** @returns {Record<string, string>} reasons by the mutants' ids */
function knownSurvivors() {
  /** @type {{ reason: string, mutants: string[] }[]} */
  const groups = JSON.parse(readFileSync(join(root, 'test/deep/mutation/survivors.json'), 'utf8'))
  return Object.fromEntries(groups.flatMap(({ reason, mutants }) => mutants.map((id) => [id, reason])))
}

/**
 * @param {Outcome[]} outcomes
 * @param {Record<string, string>} known
 * @param {boolean} isPartial whether there are mutants that were not tried
 * @returns {string[]}
 */
function differences(outcomes, known, isPartial) {
  const tried = new Map(outcomes.map((outcome) => [outcome.id, outcome]))
  const unknown = outcomes.filter(({ id, by }) => by === undefined && known[id] === undefined)
  const killed = Object.keys(known).filter((id) => tried.get(id)?.by !== undefined)
  const gone = isPartial ? [] : Object.keys(known).filter((id) => !tried.has(id))
  return [
    ...unknown.map(({ id }) => `survived without a reason: ${id}`),
    ...killed.map((id) => {
      const { by, failure } = /** @type {Outcome} */ (tried.get(id))
      return `is known to survive, but ${by} noticed it: ${id}: ${failure}`
    }),
    ...gone.map((id) => `is known to survive, but there is no such mutant any more: ${id}`),
  ]
}

/** @param {Outcome} outcome */
function tableRow({ file, line, change, by }) {
  return `${`${file}.lua:${line}`.padEnd(26)} ${shown(change, 44)} ${by === undefined ? 'SURVIVED' : shown(by, 80).trim()}`
}

/** @param {string} text @param {number} width */
function shown(text, width) {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width)
}
