// Pass: evaluates constant code: operators between literals, conditions that are decided, loops that run once or never.
import { isPure } from '../facts/effects.js'
import { breaksOut } from '../facts/flow.js'
import { functionIn, functionTables } from '../facts/function-tables.js'
import { isLiteral, truthOf } from '../facts/literals.js'
import { targetsIn } from '../facts/uses.js'
import { block, boolean, declaration, nil, number, oneValue } from '../tree/make.js'
import { rewrite } from '../tree/walk.js'

/** @import { BinaryExpression, Chunk, Clause, Expression, ForNumericStatement, IfStatement, LogicalExpression, Statement, UnaryExpression } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function foldConstants(chunk) {
  const tables = functionTables(chunk)
  const targets = targetsIn(chunk)
  rewrite(chunk, {
    expression: (node) => {
      switch (node.type) {
        case 'BinaryExpression':
          return foldOperator(node)
        case 'LogicalExpression':
          return foldLogic(node)
        case 'UnaryExpression':
          return node.operator === 'not' ? foldNot(node) : node
        case 'IndexExpression': {
          const local = node.base.type === 'Identifier' ? node.base.local : undefined
          const isEntry = local && tables.has(local) && isLiteral(node.index)
          return isEntry && !targets.has(node) && !functionIn(tables, node) ? nil() : node
        }
        default:
          return node
      }
    },
    statement: (node) => {
      if (node.type === 'ForNumericStatement') return foldLoop(node)
      if (node.type !== 'IfStatement') return node
      return foldIf(node, (condition) => (functionIn(tables, condition) ? boolean(true) : condition))
    },
  })
}

/**
 * Comparisons with an opposite for all operands. Others have none where an operand is not a number.
 *
 * @type {Record<string, '==' | '~='>}
 */
const OPPOSITES = { '==': '~=', '~=': '==' }

/** @param {UnaryExpression} node @returns {Expression} */
function foldNot(node) {
  const { argument } = node
  const truth = truthOf(argument)
  if (truth !== undefined) return boolean(!truth)
  const opposite = argument.type === 'BinaryExpression' ? OPPOSITES[argument.operator] : undefined
  return opposite && argument.type === 'BinaryExpression' ? { ...argument, operator: opposite } : node
}

/** @type {Record<string, (a: number, b: number) => number | boolean>} */
const COMPUTE = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  '==': (a, b) => a === b,
  '~=': (a, b) => a !== b,
}

/** The result of comparing a number with itself. @type {Record<string, boolean>} */
const OF_ITSELF = { '<': false, '>': false, '~=': false, '<=': true, '>=': true, '==': true }

/** @param {BinaryExpression} node @returns {Expression} */
function foldOperator(node) {
  const { operator, left, right } = node
  const isItself = left.type === 'Identifier' && right.type === 'Identifier' && left.local && left.local === right.local
  const ofItself = isItself ? OF_ITSELF[operator] : undefined
  if (ofItself !== undefined) return boolean(ofItself)
  if (operator === '+' && left.type === 'NumericLiteral' && left.value === 0) return right
  if (right.type !== 'NumericLiteral') return node
  if (left.type === 'BinaryExpression') return addSteps(node)
  if (left.type !== 'NumericLiteral') return node
  const value = COMPUTE[operator]?.(left.value, right.value)
  if (typeof value === 'boolean') return boolean(value)
  // Negative numbers are not literals.
  return value !== undefined && value >= 0 ? number(value) : node
}

/** @type {Record<string, number>} */
const SIGNS = { '+': 1, '-': -1 }

/** `x + 2 - 3` as `x - 1`. A step of 0 stays: arithmetic also makes numbers of texts. @param {BinaryExpression} node @returns {Expression} */
function addSteps(node) {
  const { left, right } = node
  if (left.type !== 'BinaryExpression' || left.right.type !== 'NumericLiteral') return node
  const [first, second] = [SIGNS[left.operator], SIGNS[node.operator]]
  if (first === undefined || second === undefined || right.type !== 'NumericLiteral') return node
  const sum = first * left.right.value + second * right.value
  return { ...node, operator: sum < 0 ? '-' : '+', left: left.left, right: number(Math.abs(sum)) }
}

/** @param {LogicalExpression} node @returns {Expression} */
function foldLogic(node) {
  const truth = truthOf(node.left)
  if (truth === undefined) return node
  if (truth !== (node.operator === 'and')) return node.left
  return oneValue(node.right)
}

/** @param {IfStatement} node @param {(condition: Expression) => Expression} known what else is known of a condition @returns {Statement | Statement[]} */
function foldIf(node, known) {
  /** @type {Clause[]} */
  const clauses = []
  for (const clause of node.clauses) {
    if (!clause.condition) {
      clauses.push({ ...clause })
      break
    }
    const condition = known(foldCondition(clause.condition))
    const truth = truthOf(condition)
    if (truth === false) continue
    clauses.push(truth ? { type: 'ElseClause', body: clause.body } : { ...clause, condition })
    if (truth) break
  }
  const [first] = clauses
  if (!first) return []
  if (!first.condition) return block(first.body)
  for (let last = clauses.at(-1); last?.body.length === 0 && isPure(last.condition ?? nil()); last = clauses.at(-1)) {
    clauses.pop()
  }
  if (clauses.length === 0) return []
  first.type = 'IfClause'
  return { ...node, clauses }
}

/** A condition, simplified: only its truth counts. @param {Expression} node @returns {Expression} */
function foldCondition(node) {
  if (node.type !== 'LogicalExpression') return node
  const left = foldCondition(node.left)
  const right = foldCondition(node.right)
  const isAnd = node.operator === 'and'
  const truth = truthOf(right)
  if (truth === isAnd) return left
  if (truth === !isAnd && isPure(left)) return right
  return foldLogic({ ...node, left, right })
}

/** @param {ForNumericStatement} node @returns {Statement | Statement[]} */
function foldLoop(node) {
  const { start, end, step, variable, body } = node
  if (start.type !== 'NumericLiteral' || end.type !== 'NumericLiteral') return node
  // A negative step is a minus before a literal.
  if (step && step.type !== 'NumericLiteral') return node
  if (start.value > end.value) return []
  if (step || start.value < end.value || breaksOut(body)) return node
  return block([declaration([variable.local], [start]), ...body])
}
