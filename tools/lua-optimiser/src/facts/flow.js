// The control flow of a piece of code.
import { below } from '../tree/walk.js'

/** @import { Node, Statement } from '../tree/nodes.js' */

/** Whether a block leaves the loop around it. @param {readonly Node[]} nodes @returns {boolean} */
export function breaksOut(nodes) {
  return nodes.some((node) => {
    if (node.type === 'BreakStatement') return true
    if (/^(While|For)/.test(node.type) || node.type === 'FunctionDeclaration') return false
    return breaksOut(below(node))
  })
}

/** Whether a node contains a return of the function it is in. @param {Node} node @returns {boolean} */
export function returnsIn(node) {
  if (node.type === 'ReturnStatement') return true
  return node.type !== 'FunctionDeclaration' && below(node).some(returnsIn)
}

/** Whether every way through a block returns. @param {readonly Statement[]} body @returns {boolean} */
export function alwaysReturns(body) {
  const last = body.at(-1)
  if (last?.type === 'ReturnStatement') return true
  if (last?.type === 'DoStatement') return alwaysReturns(last.body)
  if (last?.type !== 'IfStatement' || last.clauses.at(-1)?.type !== 'ElseClause') return false
  return last.clauses.every((clause) => alwaysReturns(clause.body))
}
