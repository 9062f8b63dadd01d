// Pass: moves the remaining functions to their calls, if these are not on every way through the script.
import { below, copy, walk } from '../tree/walk.js'

/** @import { Chunk, FunctionDeclaration, Local, Node, Statement } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function sinkFunctions(chunk) {
  const functions = chunk.body.filter((node) => node.type === 'FunctionDeclaration')
  for (const fn of functions.reverse()) {
    const local = fn.identifier?.local
    if (!local || chunk.body.some((statement) => statement !== fn && namesDirectly(statement, local))) continue
    chunk.body.splice(chunk.body.indexOf(fn), 1)
    place(chunk.body, fn, local, false)
  }
}

/**
 * Whether a statement names a variable outside of the branches of an `if`.
 *
 * @param {Node} node
 * @param {Local} local
 * @returns {boolean}
 */
function namesDirectly(node, local) {
  if (node.type === 'IfStatement') {
    return node.clauses.some(({ condition }) => condition && namesDirectly(condition, local))
  }
  if (node.type === 'Identifier') return node.local === local
  return below(node).some((child) => namesDirectly(child, local))
}

/** @param {Statement[]} body @param {FunctionDeclaration} fn @param {Local} local @param {boolean} isBranch */
function place(body, fn, local, isBranch) {
  for (const [i, statement] of body.entries()) {
    if (isBranch && namesDirectly(statement, local)) {
      const own = copy(fn)
      body.splice(i, 0, own)
      for (const later of body.slice(i + 1)) if (own.identifier) rename(later, local, own.identifier.local)
      return
    }
    placeBelow(statement, fn, local)
  }
}

/** @param {Node} node @param {FunctionDeclaration} fn @param {Local} local */
function placeBelow(node, fn, local) {
  if (node.type === 'IfStatement') for (const { body } of node.clauses) place(body, fn, local, true)
  else for (const child of below(node)) placeBelow(child, fn, local)
}

/** @param {Node} node @param {Local} from @param {Local} to */
function rename(node, from, to) {
  walk(node, (each) => {
    if (each.type === 'Identifier' && each.local === from) each.local = to
  })
}
