// Bodies of functions without their returns: statements after an `if` that returns move into its `else`.
import { alwaysReturns, returnsIn } from '../facts/flow.js'

/** @import { Clause, Expression, Statement } from '../tree/nodes.js' */

/**
 * A body in which `replace` replaces returns, and nothing runs after them.
 *
 * @param {Statement[]} body
 * @param {(values: Expression[]) => Statement[]} replace
 * @param {boolean} isWanted whether every way through it must return
 * @returns {Statement[] | undefined} undefined where that would duplicate code
 */
export function replaceReturns(body, replace, isWanted) {
  const at = body.findIndex(returnsIn)
  const node = body[at]
  if (!node) return isWanted ? undefined : body
  const before = body.slice(0, at)
  const rest = body.slice(at + 1)
  if (node.type === 'ReturnStatement') return [...before, ...replace(node.arguments)]
  if (node.type === 'DoStatement' && rest.length === 0) {
    const inner = replaceReturns(node.body, replace, isWanted)
    return inner && [...before, { ...node, body: inner }]
  }
  if (node.type !== 'IfStatement') return undefined
  /** @type {Clause[]} */
  const clauses = node.clauses.map((clause) => ({ ...clause }))
  if (clauses.at(-1)?.type !== 'ElseClause') clauses.push({ type: 'ElseClause', body: [] })
  // The statements that follow are placed once only.
  const goingOn = clauses.filter((clause) => !alwaysReturns(clause.body))
  if (rest.length > 0 && goingOn.length > 1) return undefined
  if (rest.length > 0 && goingOn.some((clause) => clause.body.some(returnsIn))) return undefined
  for (const clause of clauses) {
    const whole = goingOn.includes(clause) ? [...clause.body, ...rest] : clause.body
    const replaced = replaceReturns(whole, replace, isWanted)
    if (!replaced) return undefined
    clause.body = replaced
  }
  if (clauses.at(-1)?.body.length === 0) clauses.pop()
  return [...before, { ...node, clauses }]
}
