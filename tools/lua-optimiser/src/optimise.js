// Makes an equivalent script without functions, tables and conditions that are known beforehand: Redis creates each function
// and table of a script anew whenever it runs.
import { compareDirectly } from './passes/compare-directly.js'
import { dropUnused } from './passes/drop-unused.js'
import { flattenBlocks } from './passes/flatten-blocks.js'
import { foldConstants } from './passes/fold-constants.js'
import { inlineExpressions } from './passes/inline-expressions.js'
import { inlineStatements } from './passes/inline-statements.js'
import { mergeDeclarations } from './passes/merge-declarations.js'
import { propagateValues } from './passes/propagate-values.js'
import { sinkFunctions } from './passes/sink-functions.js'
import { specialise } from './passes/specialise.js'
import { splitTables } from './passes/split-tables.js'
import { parseLua } from './tree/parse.js'
import { printLua } from './tree/print.js'

/** @import { Chunk } from './tree/nodes.js' */

/**
 * Numbers that are known before a script runs, by the names of local variables.
 *
 * @typedef {Readonly<Record<string, number>>} Known
 */

/** Gets the name of each pass that ran, with the script as it is then. @typedef {(pass: string, chunk: Chunk) => void} Watch */

/**
 * An equivalent script, for known values of some of its variables.
 *
 * @param {string} source
 * @param {Known} [known]
 * @param {Watch} [watch] for debugging
 * @returns {string}
 */
export function optimise(source, known = {}, watch = () => {}) {
  const chunk = parseLua(source)
  const isSpecial = Object.keys(known).length > 0
  /** @param {(chunk: Chunk) => void} pass */
  const apply = (pass, name = pass.name) => {
    pass(chunk)
    watch(name, chunk)
  }
  apply((tree) => specialise(tree, known), 'specialise')
  // A pass may enable others, so all run again until nothing changes.
  let text = ''
  for (let before; text !== before; ) {
    before = text
    apply(foldConstants)
    apply(propagateValues)
    apply(inlineExpressions)
    apply(inlineStatements)
    // In a script of all parts, blocks stay: a function of Lua may have 200 local variables.
    apply((tree) => flattenBlocks(tree, isSpecial), 'flattenBlocks')
    apply(splitTables)
    apply(dropUnused)
    apply(mergeDeclarations)
    text = printLua(chunk)
  }
  apply(compareDirectly)
  apply(dropUnused)
  apply(sinkFunctions)
  return printLua(chunk)
}
