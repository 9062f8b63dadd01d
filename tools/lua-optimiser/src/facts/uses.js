// How local variables are used.
import { nil } from '../tree/make.js'
import { declaredBy, walk } from '../tree/walk.js'

/** @import { Expression, IndexExpression, Local, LocalStatement, Node } from '../tree/nodes.js' */

/**
 * How a local variable is used in a tree.
 *
 * @typedef {object} Uses
 * @property {number} reads of its value
 * @property {number} writes assignments to it, the declaration apart
 * @property {number} fills assignments to entries of it
 * @property {Expression} [init] its initial value: nil for none; undefined if that is unknown
 * @property {IndexExpression[]} entries of a table, where entries are read or written
 */

/** @param {Node} tree @returns {Map<Local, Uses>} */
export function usesIn(tree) {
  /** @type {Map<Local, Uses>} */
  const all = new Map()
  const of = (/** @type {Local} */ local) => {
    let uses = all.get(local)
    if (!uses) {
      uses = { reads: 0, writes: 0, fills: 0, entries: [] }
      all.set(local, uses)
    }
    return uses
  }
  /** Names that are no reads. @type {Set<Node>} */
  const other = new Set()
  walk(tree, (node) => {
    for (const each of declaredBy(node)) other.add(each)
    if (node.type === 'LocalStatement') {
      for (const [i, { local }] of node.variables.entries()) of(local).init = initOf(node, i)
    } else if (node.type === 'AssignmentStatement') {
      for (const each of node.variables) {
        other.add(each)
        if (each.type === 'Identifier') {
          if (each.local) of(each.local).writes++
        } else {
          if (each.base.type === 'Identifier' && each.base.local) of(each.base.local).fills++
          other.add(each.base)
        }
      }
    }
    if (node.type === 'IndexExpression' && node.base.type === 'Identifier' && node.base.local) {
      of(node.base.local).entries.push(node)
    }
    if (node.type === 'Identifier' && node.local && !other.has(node)) of(node.local).reads++
  })
  return all
}

/**
 * The initial value of a declaration's `i`-th variable.
 *
 * @param {LocalStatement} node
 * @param {number} i
 * @returns {Expression | undefined}
 */
function initOf({ init, variables }, i) {
  if (init.length === variables.length) return init[i]
  return init.length === 0 ? nil() : undefined
}

/** Names and entries that are assigned. @param {Node} tree @returns {Set<Node>} */
export function targetsIn(tree) {
  /** @type {Set<Node>} */
  const targets = new Set()
  walk(tree, (node) => {
    if (node.type === 'AssignmentStatement') for (const each of node.variables) targets.add(each)
  })
  return targets
}
