// Which scripts are made of lua/, and how.
import { bundle, withParts } from './lua.js'
import { straighten } from './lua-straighten.js'

/** Kinds of cells, in the order of the numbers by which decide.lua knows them, from 1. */
export const KINDS = ['bucket', 'log', 'segments', 'counter', 'concurrency']

/** The scripts for batches of plans of one cell each, all alike, which give nothing back: of which kind, and what else is known. */
const ALIKE = {
  'decide-bucket': { kind: 'bucket' },
  'decide-concurrency': { kind: 'concurrency' },
  'decide-counter': { kind: 'counter' },
  'decide-log': { kind: 'log', limitsAt: 0, limits: 1 },
  'decide-logs': { kind: 'log', limitsAt: 0 },
  'decide-segments': { kind: 'segments' },
}

/** Kinds of which equal decisions on one key are made at once: a state after some charges tells what it was after each of them. */
export const TOGETHER = ['bucket', 'log', 'counter']

/**
 * The text of every script, by name.
 *
 * @param {import('./lua.js').ReadSource} read
 * @param {typeof straighten} [straightened] to make it straight; another may know the answer
 * @returns {Record<string, string>}
 */
export function scriptsOf(read, straightened = straighten) {
  const decide = bundle('decide', read)
  const alike = Object.entries(ALIKE).map(([name, { kind, ...known }]) => {
    const together = TOGETHER.includes(kind)
    const parts = {
      several: false,
      settle: false,
      together,
      ...Object.fromEntries(KINDS.map((each) => [each, each === kind])),
    }
    return [name, straightened(withParts(decide, parts), { cells: 1, kind: KINDS.indexOf(kind) + 1, ...known })]
  })
  return {
    block: bundle('block', read),
    'cross-slots': bundle('cross-slots', read),
    // What gives back, and what is decided at once, is in all that the store puts together of its parts.
    decide: straightened(withParts(decide, { settle: true, together: true })),
    ...Object.fromEntries(alike),
    probe: bundle('probe', read),
  }
}
