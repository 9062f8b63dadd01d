// Which scripts are made of lua/, and how.
import { optimise } from './optimise.js'
import { bundle } from './source/bundle.js'
import { constantsOf } from './source/constants.js'
import { changedLines, lineChanges } from './source/line-changes.js'
import { withSections } from './source/sections.js'

/** @import { ReadSource } from './source/bundle.js' */

/**
 * Scripts for batches of plans of one cell each, all of one kind, without refunds: which kind, whether several limits
 * share a cell, and what is known of such batches.
 *
 * @type {Readonly<Record<string, { kind: string, isShared?: boolean, known?: import('./optimise.js').Known }>>}
 */
export const UNIFORM = {
  'decide-bucket': { kind: 'bucket' },
  'decide-concurrency': { kind: 'concurrency' },
  'decide-counter': { kind: 'counter' },
  'decide-log': { kind: 'log', known: { limitsAt: 0, limits: 1 } },
  'decide-logs': { kind: 'log', isShared: true, known: { limitsAt: 0 } },
  'decide-segments': { kind: 'segments' },
}

/** Kinds of which equal decisions on one key are made at once: a state after some charges tells what it was after each. */
export const TOGETHER = ['bucket', 'log', 'counter']

/** What the store calls a kind of cell, by its name in Lua. @param {string} name */
const kindName = (name) => name.toLowerCase()

/**
 * The numbers that decide.lua and the store tell each other.
 *
 * @param {ReadSource} read
 */
export function sharedConstants(read) {
  const { ops, flags, outcomes, kinds } = constantsOf('decide', read('decide') ?? '')
  if (!ops || !flags || !outcomes || !kinds) throw new Error('lua/decide.lua: expected ops, flags, outcomes and kinds')
  return { ops, flags, outcomes, kinds }
}

/**
 * The kinds of cells in the order of their numbers, which have to be 1, 2 and so on.
 *
 * @param {import('./source/constants.js').Constants} numbers
 */
export function kindsInOrder(numbers) {
  const entries = Object.entries(numbers)
  for (const [i, [name, number]] of entries.entries()) {
    if (number !== i + 1) throw new Error(`lua/decide.lua: ${name}: expected ${i + 1}, got ${number}`)
  }
  return entries.map(([name]) => kindName(name))
}

/**
 * The text of every script, by name.
 *
 * @param {ReadSource} read
 * @param {typeof optimise} [optimised] another may remember what it made before
 * @returns {Record<string, string>}
 */
export function scriptsOf(read, optimised = optimise) {
  const decide = bundle('decide', read)
  const numbers = sharedConstants(read).kinds
  const uniform = Object.entries(UNIFORM).map(([name, choice]) => [
    name,
    uniformScript(decide, numbers, choice, false, optimised),
  ])
  return {
    block: bundle('block', read),
    'cross-slots': bundle('cross-slots', read),
    // The store leaves sections out of this one, but not what gives back and what is decided at once.
    decide: optimised(withSections(decide, { settle: true, together: true })),
    ...Object.fromEntries(uniform),
    probe: bundle('probe', read),
    strike: bundle('strike', read),
  }
}

/**
 * What the scripts of `UNIFORM` are for plans that ban, by name: the text of each, and how it differs from that without.
 *
 * @param {ReadSource} read
 * @param {typeof optimise} [optimised]
 * @returns {Record<string, { source: string, changes: import('./source/line-changes.js').Change[] }>}
 */
export function banningScriptsOf(read, optimised = optimise) {
  const decide = bundle('decide', read)
  const numbers = sharedConstants(read).kinds
  return Object.fromEntries(
    Object.entries(UNIFORM).map(([name, choice]) => {
      const without = uniformScript(decide, numbers, choice, false, optimised)
      const source = uniformScript(decide, numbers, choice, true, optimised)
      const changes = lineChanges(without, source)
      if (changedLines(without, changes) !== source)
        throw new Error(`${name}: its changes do not make it the script for bans`)
      return [name, { source, changes }]
    }),
  )
}

/**
 * @param {string} decide
 * @param {import('./source/constants.js').Constants} numbers
 * @param {typeof UNIFORM[string]} choice
 * @param {boolean} bans
 * @param {typeof optimise} optimised
 */
function uniformScript(decide, numbers, { kind, known }, bans, optimised) {
  const sections = {
    several: false,
    settle: false,
    bans,
    together: TOGETHER.includes(kind),
    ...Object.fromEntries(Object.keys(numbers).map((name) => [kindName(name), kindName(name) === kind])),
  }
  const number = /** @type {number} */ (numbers[kind.toUpperCase()])
  return optimised(withSections(decide, sections), { cells: 1, kind: number, ...known })
}
