// Pass: replaces calls of a function that only returns an expression by the expression.
import { callsOwnFunctions, isPure } from '../facts/effects.js'
import { calleesIn } from '../facts/function-tables.js'
import { isLiteral } from '../facts/literals.js'
import { usesIn } from '../facts/uses.js'
import { nil, oneValue } from '../tree/make.js'
import { copy, rewrite } from '../tree/walk.js'
import { mayGiveMore } from './expand-call.js'

/** @import { CallExpression, Chunk, Expression, FunctionDeclaration, Local, ReturnStatement } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function inlineExpressions(chunk) {
  const calleeOf = calleesIn(chunk)
  rewrite(chunk, {
    expression: (node) => {
      const callee = calleeOf(node)
      const result = callee && node.type === 'CallExpression' ? resultOf(node, callee) : undefined
      if (!result) return node
      return node.type === 'CallExpression' && node.inParens ? oneValue(result) : result
    },
  })
}

/**
 * The result of a call as an expression. Undefined where it cannot be written as one.
 *
 * @param {CallExpression} call
 * @param {FunctionDeclaration} callee
 */
function resultOf(call, callee) {
  const [only] = callee.body
  if (callee.body.length !== 1 || only?.type !== 'ReturnStatement' || only.arguments.length !== 1) return undefined
  if (mayGiveMore(call, callee)) return undefined
  // Its arguments are evaluated before it runs: functions that it calls must not be able to change them.
  if (callsOwnFunctions(callee.body) && !call.arguments.every(isLiteral)) return undefined
  const uses = usesIn(only)
  /** @type {Map<Local, Expression>} */
  const values = new Map()
  for (const [i, { local }] of callee.parameters.entries()) {
    const argument = call.arguments[i] ?? nil()
    const isSimple = isLiteral(argument) || argument.type === 'Identifier'
    if (!isSimple && !(isPure(argument) && (uses.get(local)?.reads ?? 0) <= 1)) return undefined
    values.set(local, argument)
  }
  return withValues(only, values).arguments[0]
}

/**
 * A copy of a function's result, with arguments in the place of parameters.
 *
 * @param {ReturnStatement} node
 * @param {ReadonlyMap<Local, Expression>} values
 */
function withValues(node, values) {
  const result = copy(node)
  rewrite(result, {
    expression: (each) => {
      const value = each.type === 'Identifier' && each.local ? values.get(each.local) : undefined
      return value ? oneValue(copy(value)) : each
    },
  })
  return result
}
