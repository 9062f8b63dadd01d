// Which scripts are made of lua/, and how.
import { optimise } from './optimise.js'
import { bundle } from './source/bundle.js'
import { withSections } from './source/sections.js'

/** Kinds of cells, in the order of the numbers by which decide.lua knows them, from 1. */
export const KINDS = ['bucket', 'log', 'segments', 'counter', 'concurrency']

/**
 * Scripts for batches of plans of one cell each, all of one kind, without refunds: which kind, and what else is known.
 *
 * @type {Record<string, { kind: string } & Record<string, number | string>>}
 */
const UNIFORM = {
  'decide-bucket': { kind: 'bucket' },
  'decide-concurrency': { kind: 'concurrency' },
  'decide-counter': { kind: 'counter' },
  'decide-log': { kind: 'log', limitsAt: 0, limits: 1 },
  'decide-logs': { kind: 'log', limitsAt: 0 },
  'decide-segments': { kind: 'segments' },
}

/** Kinds of which equal decisions on one key are made at once: a state after some charges tells what it was after each. */
export const TOGETHER = ['bucket', 'log', 'counter']

/**
 * The text of every script, by name.
 *
 * @param {import('./source/bundle.js').ReadSource} read
 * @param {typeof optimise} [optimised] another may remember what it made before
 * @returns {Record<string, string>}
 */
export function scriptsOf(read, optimised = optimise) {
  const decide = bundle('decide', read)
  const uniform = Object.entries(UNIFORM).map(([name, { kind, ...known }]) => {
    const sections = {
      several: false,
      settle: false,
      together: TOGETHER.includes(kind),
      ...Object.fromEntries(KINDS.map((each) => [each, each === kind])),
    }
    return [name, optimised(withSections(decide, sections), { cells: 1, kind: KINDS.indexOf(kind) + 1, ...known })]
  })
  return {
    block: bundle('block', read),
    // The store leaves sections out of this one, but not what gives back and what is decided at once.
    decide: optimised(withSections(decide, { settle: true, together: true })),
    ...Object.fromEntries(uniform),
    probe: bundle('probe', read),
  }
}
