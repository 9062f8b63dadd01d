// Makes a script that runs straight on: without functions, tables and questions that are settled beforehand.
import {
  compareDirectly,
  dropUnused,
  flatten,
  foldConstants,
  mergeDeclarations,
  propagate,
  settleKnown,
  splitTables,
} from './lua-fold.js'
import { inlineExpressions, inlineStatements } from './lua-inline.js'
import { below, copy, parseLua, printLua, walk } from './lua-tree.js'

/** @typedef {import('./lua-tree.js').Node} Node */
/** @typedef {import('./lua-tree.js').Local} Local */

/**
 * A script that does the same, for what is known of some of its variables.
 *
 * @param {string} source
 * @param {Readonly<Record<string, number>>} [known] by name; what is not known is worked out as it runs
 * @returns {string}
 */
export function straighten(source, known = {}) {
  const chunk = parseLua(source)
  settleKnown(chunk, known)
  let text = ''
  for (let before; text !== before; ) {
    before = text
    foldConstants(chunk)
    propagate(chunk)
    inlineExpressions(chunk)
    inlineStatements(chunk)
    flatten(chunk, Object.keys(known).length > 0)
    splitTables(chunk)
    dropUnused(chunk)
    mergeDeclarations(chunk)
    text = printLua(chunk)
  }
  compareDirectly(chunk)
  dropUnused(chunk)
  makeFunctionsLate(chunk)
  return printLua(chunk)
}

/** Has the functions that are left made where they are called, if that is not on every way. @param {Node} chunk */
function makeFunctionsLate(chunk) {
  const functions = chunk.body.filter((/** @type {Node} */ { type }) => type === 'FunctionDeclaration')
  for (const fn of functions.reverse()) {
    const { local } = fn.identifier
    if (!isCalledSometimes(chunk.body, fn)) continue
    chunk.body.splice(chunk.body.indexOf(fn), 1)
    place(chunk.body, fn, local, false)
  }
}

/** Whether a function is named only where an `if` leads to. @param {Node[]} body @param {Node} fn */
function isCalledSometimes(body, fn) {
  return body.every((statement) => statement === fn || !namesDirectly(statement, fn.identifier.local))
}

/** Whether a statement names a variable outside of the blocks that an `if` leads to. @param {Node} node @param {Local} local @returns {boolean} */
function namesDirectly(node, local) {
  if (node.type === 'IfStatement')
    return node.clauses.some((/** @type {Node} */ { condition }) => condition && namesDirectly(condition, local))
  return node.local === local || below(node).some((child) => namesDirectly(child, local))
}

/** @param {Node[]} body @param {Node} fn @param {Local} local @param {boolean} isBranch */
function place(body, fn, local, isBranch) {
  for (const [i, statement] of body.entries()) {
    if (isBranch && namesDirectly(statement, local)) {
      const own = copy(fn)
      body.splice(i, 0, own)
      for (const later of body.slice(i + 1)) rename(later, local, own.identifier.local)
      return
    }
    placeBelow(statement, fn, local)
  }
}

/** @param {Node} node @param {Node} fn @param {Local} local */
function placeBelow(node, fn, local) {
  if (node.type === 'IfStatement') for (const { body } of node.clauses) place(body, fn, local, true)
  else for (const child of below(node)) placeBelow(child, fn, local)
}

/** @param {Node} node @param {Local} from @param {Local} to */
function rename(node, from, to) {
  walk(node, (each) => {
    if (each.local === from) each.local = to
  })
}
