// The scripts that are made of lua/.
import { optimise } from './optimise.js'
import { bundle } from './source/bundle.js'
import { cellKindsOf, readWithKinds } from './source/cell-kinds.js'
import { constantsOf } from './source/constants.js'
import { withSections } from './source/sections.js'

/** @import { CellKind, KindScript } from './source/cell-kinds.js' */
/** @import { Source } from './source/folder.js' */

/**
 * Scripts for cells of one kind, in the order of their names. `decides` selects them: `decide` for batches of plans whose cells
 * are all of that kind, without refunds; `one` for one decision of one cell.
 *
 * @param {readonly CellKind[]} kinds
 * @param {'decide' | 'one'} decides
 * @returns {{ kind: CellKind, script: KindScript }[]}
 */
export function kindScripts(kinds, decides) {
  return kinds
    .flatMap((kind) => kind.scripts.map((script) => ({ kind, script })))
    .filter(({ script }) => script.name.startsWith(`${decides}-`))
    .sort((a, b) => (a.script.name < b.script.name ? -1 : 1))
}

/**
 * The numbers that scripts of decisions and the store exchange, beside those of the kinds of cells.
 *
 * @param {Source} source
 */
export function sharedConstants({ read }) {
  const { ops, flags, outcomes } = constantsOf('shared/names', read('shared/names') ?? '')
  if (!ops || !flags || !outcomes) throw new Error('lua/shared/names.lua: expected ops, flags and outcomes')
  return { ops, flags, outcomes }
}

/**
 * The text of every script, by name.
 *
 * @param {Source} source
 * @param {typeof optimise} [optimised] another one may cache results
 * @param {boolean} [isIndented] for people: the store's scripts are not, which saves a third of their published size
 * @returns {Record<string, string>}
 */
export function scriptsOf(source, optimised = optimise, isIndented = false) {
  const kinds = cellKindsOf(source)
  const read = readWithKinds(source.read, kinds)
  const decide = bundle('decide', read)
  const one = bundle('one', read)
  const uniform = kindScripts(kinds, 'decide').map(({ kind, script }) => [
    script.name,
    uniformScript(decide, kinds, kind, script, optimised),
  ])
  const ones = kindScripts(kinds, 'one').map(({ kind, script: { name, isShared, known } }) => {
    const sections = {
      several: false,
      joint: false,
      together: false,
      debit: false,
      calendar: false,
      exchange: false,
      shared: isShared,
      single: !isShared,
      ...onlyKind(kinds, kind),
    }
    /** @type {Record<string, number>} */
    const params = isShared ? {} : { paramCount: kind.params }
    return [name, optimised(withSections(one, sections), { kind: kind.number, ...params, ...known })]
  })
  const scripts = {
    block: bundle('block', read),
    change: bundle('change', read),
    'changes-page': bundle('changes-page', read),
    'cross-slots': bundle('cross-slots', read),
    // The store leaves out sections of this one, but not those of refunds and of equal decisions made together.
    decide: optimised(withSections(decide, { refund: true, together: true, exchange: false })),
    ...Object.fromEntries(uniform),
    ...Object.fromEntries(ones),
    // Not optimised: most of its time goes into the many counts.
    exchange: withSections(bundle('exchange', read), {
      several: false,
      joint: false,
      refund: false,
      debit: false,
      calendar: false,
      together: false,
      exchange: true,
      ...Object.fromEntries(kinds.map(({ name, isExchanged }) => [name, isExchanged])),
    }),
    figures: bundle('figures', read),
    forget: bundle('forget', read),
    kept: bundle('kept', read),
    index: bundle('index', read),
    'index-clear': bundle('index-clear', read),
    'index-page': bundle('index-page', read),
    'mark-waiting': bundle('mark-waiting', read),
    permits: bundle('permits', read),
    probe: bundle('probe', read),
    quota: bundle('quota', read),
    refusals: bundle('refusals', read),
    'refusals-slice': bundle('refusals-slice', read),
    strike: bundle('strike', read),
    turns: bundle('turns', read),
  }
  return isIndented ? scripts : Object.fromEntries(Object.entries(scripts).map(withoutIndentation))
}

/**
 * @param {string} decide
 * @param {readonly CellKind[]} kinds
 * @param {CellKind} kind
 * @param {KindScript} script
 * @param {typeof optimise} optimised
 */
function uniformScript(decide, kinds, kind, { isJoint, known }, optimised) {
  const sections = {
    several: isJoint,
    joint: isJoint,
    refund: false,
    debit: false,
    charges: false,
    exchange: false,
    together: kind.goesTogether,
    ...onlyKind(kinds, kind),
  }
  return optimised(withSections(decide, sections), { ...(isJoint ? {} : { cells: 1 }), kind: kind.number, ...known })
}

/** The sections of kinds, with those of one alone. @param {readonly CellKind[]} kinds @param {CellKind} kind */
function onlyKind(kinds, kind) {
  return Object.fromEntries(kinds.map((each) => [each.name, each === kind]))
}

/** No string continues over the end of a line. @param {[name: string, text: string]} script @returns {[string, string]} */
function withoutIndentation([name, text]) {
  return [name, text.replace(/^ +/gm, '')]
}
