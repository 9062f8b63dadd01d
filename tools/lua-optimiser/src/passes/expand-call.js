// The body of a function with the arguments of a call, as its replacement.
import { assignedIn, callsOwnFunctions, isPure } from '../facts/effects.js'
import { isLiteral } from '../facts/literals.js'
import { block, declaration, nil } from '../tree/make.js'
import { copy, rewrite } from '../tree/walk.js'
import { replaceReturns } from './replace-returns.js'

/** @import { CallExpression, Expression, FunctionDeclaration, Local, Statement } from '../tree/nodes.js' */

/**
 * The treatment of a function's returns.
 *
 * @typedef {object} OnReturn
 * @property {(values: Expression[]) => Statement[]} [replace] the statements in their place; without it they stay
 * @property {boolean} [isWanted] whether every way through the function has to return
 * @property {(local: Local) => boolean} isConstant whether a variable of the surroundings never changes
 */

/**
 * @param {FunctionDeclaration} callee
 * @param {CallExpression} call
 * @param {OnReturn} onReturn
 * @returns {Statement[] | undefined} undefined where its flow does not determine its returns
 */
export function expandCall(callee, call, { replace, isWanted = false, isConstant }) {
  const { parameters, body } = copy(callee)
  const assigned = assignedIn(body)
  const isOpen = callsOwnFunctions(body)
  /** Whether a value is the same wherever the body uses it. @param {Expression} value */
  const staysTheSame = (value) => {
    if (isLiteral(value)) return true
    if (value.type !== 'Identifier') return false
    if (!value.local || isConstant(value.local)) return true
    // The body, or a function that it calls, may change a variable.
    return !assigned.has(value.local) && !isOpen
  }
  /** Parameters that are replaced by their values. @type {Map<Local, Expression>} */
  const values = new Map()
  const kept = []
  for (const [i, { local }] of parameters.entries()) {
    const value = call.arguments[i] ?? nil()
    if (staysTheSame(value) && !assigned.has(local)) values.set(local, value)
    else kept.push({ local, value })
  }
  const surplus = call.arguments.slice(parameters.length)
  if (!surplus.every(isPure) || mayGiveMore(call, callee)) return undefined
  const expanded = block(body)
  rewrite(expanded, {
    expression: (node) => {
      const value = node.type === 'Identifier' && node.local ? values.get(node.local) : undefined
      return value ? copy(value) : node
    },
  })
  const flow = replace ? replaceReturns(expanded.body, replace, isWanted) : expanded.body
  if (!flow) return undefined
  expanded.body = flow
  if (kept.length > 0) {
    const locals = kept.map(({ local }) => local)
    const inits = kept.map(({ value }) => value)
    expanded.body.unshift(declaration(locals, inits))
  }
  return [expanded]
}

/**
 * Whether the last argument of a call may yield several values.
 *
 * @param {CallExpression} call
 * @param {FunctionDeclaration} callee
 */
export function mayGiveMore(call, callee) {
  return call.arguments.length < callee.parameters.length && call.arguments.at(-1)?.type === 'CallExpression'
}
