// Facts about a value without running anything.

/** @import { Expression, Literal, Node } from '../tree/nodes.js' */

/** @param {Node} node @returns {node is Literal} */
export function isLiteral(node) {
  return (
    node.type === 'NumericLiteral' ||
    node.type === 'StringLiteral' ||
    node.type === 'BooleanLiteral' ||
    node.type === 'NilLiteral'
  )
}

/** Whether a literal is true in Lua. @param {Expression} node @returns {boolean | undefined} undefined for anything else */
export function truthOf(node) {
  if (node.type === 'BooleanLiteral') return node.value
  if (node.type === 'NilLiteral') return false
  return isLiteral(node) ? true : undefined
}
