// Pass: removes variables that nothing reads, with their values, and functions that nothing calls.
import { isPure } from '../facts/effects.js'
import { usesIn } from '../facts/uses.js'
import { rewrite } from '../tree/walk.js'

/** @import { AssignmentStatement, Chunk, Local, LocalStatement, Target } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function dropUnused(chunk) {
  const uses = usesIn(chunk)
  const isUnread = (/** @type {Local} */ local) => !uses.get(local)?.reads
  const isStillAssigned = (/** @type {Local} */ local) => Boolean(uses.get(local)?.writes || uses.get(local)?.fills)

  /** Whether nothing uses a declared or assigned target. @param {Target} target @param {boolean} isDeclared */
  const isDead = (target, isDeclared) => {
    if (target.type === 'Identifier' && target.local) {
      return isUnread(target.local) && !(isDeclared && isStillAssigned(target.local))
    }
    const table = target.type !== 'Identifier' && target.base.type === 'Identifier' ? target.base.local : undefined
    return table && isUnread(table) && uses.get(table)?.init?.type === 'TableConstructorExpression'
  }

  /** @param {LocalStatement | AssignmentStatement} node */
  const withoutDead = (node) => {
    const { init } = node
    const variables = /** @type {Target[]} */ (node.variables)
    const isKept = variables.map((target, i) => {
      const value = init.length === variables.length || variables.length === 1 ? init[i] : init[0]
      return !isDead(target, node.type === 'LocalStatement') || !(value === undefined || isPure(value))
    })
    const isPaired = init.length === 0 || init.length === variables.length
    if (isKept.every(Boolean) || (!isPaired && isKept.some(Boolean))) return node
    if (!isKept.some(Boolean)) return []
    /** @template T @param {T[]} list */
    const keep = (list) => list.filter((_, i) => isKept[i])
    return node.type === 'LocalStatement'
      ? { ...node, variables: keep(node.variables), init: keep(init) }
      : { ...node, variables: keep(node.variables), init: keep(init) }
  }

  rewrite(chunk, {
    statement: (node) => {
      if (node.type === 'FunctionDeclaration') return node.identifier && isUnread(node.identifier.local) ? [] : node
      if (node.type === 'DoStatement' && node.body.length === 0) return []
      return node.type === 'LocalStatement' || node.type === 'AssignmentStatement' ? withoutDead(node) : node
    },
  })
}
