// Which scripts are made of lua/, and how.
import { optimise } from './optimise.js'
import { bundle } from './source/bundle.js'
import { constantsOf } from './source/constants.js'
import { changedLines, lineChanges } from './source/line-changes.js'
import { withSections } from './source/sections.js'

/** @import { ReadSource } from './source/bundle.js' */

/**
 * Scripts for batches of plans whose cells are all of one kind, without refunds: which kind; whether several limits share a cell,
 * or several cells a key; and what is known of such batches. Without that each plan has one cell.
 *
 * @type {Readonly<Record<string, { kind: string, isShared?: boolean, known?: import('./optimise.js').Known }>>}
 */
export const UNIFORM = {
  'decide-bucket': { kind: 'bucket', known: { own: 1 } },
  'decide-buckets': { kind: 'bucket', isShared: true },
  'decide-concurrency': { kind: 'concurrency' },
  'decide-counter': { kind: 'counter', known: { own: 1 } },
  'decide-counters': { kind: 'counter', isShared: true },
  'decide-log': { kind: 'log', known: { own: 1, limitsAt: 0, limits: 1 } },
  'decide-logs': { kind: 'log', isShared: true, known: { own: 1, limitsAt: 0 } },
  'decide-segments': { kind: 'segments' },
}

/** How many parameters a cell has, by its kind; of logs one limit's. */
const PARAMS = { bucket: 4, concurrency: 2, counter: 4, log: 4, segments: 4 }

/**
 * Scripts for one decision of one cell: which kind, whether several limits share it, and what is known of it.
 *
 * @type {Readonly<Record<string, { kind: keyof typeof PARAMS, isShared?: boolean, known?: import('./optimise.js').Known }>>}
 */
export const ONE = {
  'one-bucket': { kind: 'bucket', known: { own: 1 } },
  'one-concurrency': { kind: 'concurrency' },
  'one-counter': { kind: 'counter', known: { own: 1 } },
  'one-log': { kind: 'log', known: { own: 1, params: 1, limitsAt: 0, limits: 1 } },
  'one-logs': { kind: 'log', isShared: true, known: { own: 1, params: 1, limitsAt: 0 } },
  'one-segments': { kind: 'segments' },
}

/** Kinds of which equal decisions on one key are made at once: a state after some charges tells what it was after each. */
export const TOGETHER = ['bucket', 'log', 'counter']

/** What the store calls a kind of cell, by its name in Lua. @param {string} name */
const kindName = (name) => name.toLowerCase()

/**
 * The numbers that scripts of decisions and the store tell each other.
 *
 * @param {ReadSource} read
 */
export function sharedConstants(read) {
  const { ops, flags, outcomes, kinds } = constantsOf('shared/names', read('shared/names') ?? '')
  if (!ops || !flags || !outcomes || !kinds)
    throw new Error('lua/shared/names.lua: expected ops, flags, outcomes and kinds')
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
    if (number !== i + 1) throw new Error(`lua/shared/names.lua: ${name}: expected ${i + 1}, got ${number}`)
  }
  return entries.map(([name]) => kindName(name))
}

/**
 * The text of every script, by name.
 *
 * @param {ReadSource} read
 * @param {typeof optimise} [optimised] another may remember what it made before
 * @param {boolean} [isIndented] for people to read: the store's are not, which is a third of their size as they are published
 * @returns {Record<string, string>}
 */
export function scriptsOf(read, optimised = optimise, isIndented = false) {
  const decide = bundle('decide', read)
  const one = bundle('one', read)
  const numbers = sharedConstants(read).kinds
  const numberOf = (/** @type {string} */ kind) => /** @type {number} */ (numbers[kind.toUpperCase()])
  const onlyKind = (/** @type {string} */ kind) =>
    Object.fromEntries(Object.keys(numbers).map((name) => [kindName(name), kindName(name) === kind]))
  const uniform = Object.entries(UNIFORM).map(([name, choice]) => [
    name,
    uniformScript(decide, numbers, choice, false, optimised),
  ])
  const ones = Object.entries(ONE).map(([name, { kind, isShared = false, known }]) => {
    const sections = {
      several: false,
      joint: false,
      together: false,
      shared: isShared,
      single: !isShared,
      ...onlyKind(kind),
    }
    /** @type {Record<string, number>} */
    const params = isShared ? {} : { paramCount: PARAMS[kind] }
    return [name, optimised(withSections(one, sections), { kind: numberOf(kind), ...params, ...known })]
  })
  const scripts = {
    block: bundle('block', read),
    'cross-slots': bundle('cross-slots', read),
    // The store leaves sections out of this one, but not what gives back and what is decided at once.
    decide: optimised(withSections(decide, { settle: true, together: true })),
    ...Object.fromEntries(uniform),
    ...Object.fromEntries(ones),
    forget: bundle('forget', read),
    kept: bundle('kept', read),
    index: bundle('index', read),
    'index-clear': bundle('index-clear', read),
    'index-page': bundle('index-page', read),
    probe: bundle('probe', read),
    refusals: bundle('refusals', read),
    'refusals-slice': bundle('refusals-slice', read),
    strike: bundle('strike', read),
  }
  return isIndented ? scripts : Object.fromEntries(Object.entries(scripts).map(withoutIndentation))
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
  // Bans of plans whose limits share a key are as rare as they are small beside these limits.
  const banning = Object.entries(UNIFORM).filter(([, choice]) => !isJoint(choice))
  return Object.fromEntries(
    banning.map(([name, choice]) => {
      const [without, source] = [false, true].map((bans) => {
        const [, text] = withoutIndentation([name, uniformScript(decide, numbers, choice, bans, optimised)])
        return text
      })
      const changes = lineChanges(without ?? '', source ?? '')
      if (changedLines(without ?? '', changes) !== source)
        throw new Error(`${name}: its changes do not make it the script for bans`)
      return [name, { source: source ?? '', changes }]
    }),
  )
}

/** Whether it is for several cells under one key: limits on one log are one cell. @param {(typeof UNIFORM)[string]} choice */
function isJoint({ kind, isShared = false }) {
  return isShared && kind !== 'log'
}

/**
 * @param {string} decide
 * @param {import('./source/constants.js').Constants} numbers
 * @param {(typeof UNIFORM)[string]} choice
 * @param {boolean} bans
 * @param {typeof optimise} optimised
 */
function uniformScript(decide, numbers, choice, bans, optimised) {
  const { kind, known } = choice
  const several = isJoint(choice)
  const sections = {
    several,
    joint: several,
    settle: false,
    bans,
    together: TOGETHER.includes(kind),
    ...Object.fromEntries(Object.keys(numbers).map((name) => [kindName(name), kindName(name) === kind])),
  }
  const number = /** @type {number} */ (numbers[kind.toUpperCase()])
  return optimised(withSections(decide, sections), { ...(several ? {} : { cells: 1 }), kind: number, ...known })
}

/** No string goes on over the end of a line. @param {[name: string, text: string]} script @returns {[string, string]} */
function withoutIndentation([name, text]) {
  return [name, text.replace(/^ +/gm, '')]
}
