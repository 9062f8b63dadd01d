// Pass: writes `max(a, b)` and `min(a, b)` as comparisons, which cost less than a call, where a and b are cheap enough to
// be evaluated twice.
import { copy, rewrite, walk } from '../tree/walk.js'

/** @import { BinaryExpression, Chunk, Expression, LogicalExpression } from '../tree/nodes.js' */

/** @type {Record<string, string>} */
const COMPARISONS = { max: '>', min: '<' }

/** @param {Chunk} chunk */
export function compareDirectly(chunk) {
  rewrite(chunk, {
    expression: (node) => {
      if (node.type !== 'CallExpression' || node.base.type !== 'Identifier') return node
      const operator = COMPARISONS[node.base.name]
      const [left, right] = node.arguments
      if (!operator || !left || !right || node.arguments.length !== 2 || !node.arguments.every(isCheap)) return node
      /** @type {BinaryExpression} */
      const comparison = { type: 'BinaryExpression', operator, left: copy(left), right: copy(right) }
      /** @type {LogicalExpression} */
      const first = { type: 'LogicalExpression', operator: 'and', left: comparison, right: left }
      return { type: 'LogicalExpression', operator: 'or', left: first, right }
    },
  })
}

/** @param {Expression} node */
function isCheap(node) {
  let size = 0
  walk(node, ({ type }) => {
    size += type === 'CallExpression' || type === 'LogicalExpression' ? 10 : 1
  })
  return size <= 9
}
