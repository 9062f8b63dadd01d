// Pass: replaces calls of functions by their bodies, where the results of a call can be computed before its statement.
// Functions that are long and called in many places stay.
import { actsOutside, assignedIn, isPure } from '../facts/effects.js'
import { calleesIn } from '../facts/function-tables.js'
import { usesIn } from '../facts/uses.js'
import { assignment, declaration, identifier } from '../tree/make.js'
import { below, rewrite, walk, walkAll } from '../tree/walk.js'
import { expandCall } from './expand-call.js'
import { replaceReturns } from './replace-returns.js'

/** @import { CallExpression, Chunk, Clause, Expression, FunctionDeclaration, Local, Node, Statement } from '../tree/nodes.js' */

/** The most statements of a function that may be copied anywhere, and the most that its copies may add to a script. */
const SHORT = 6
const MAX_ADDED = 60

/**
 * Facts for replacing calls.
 *
 * @typedef {object} Work
 * @property {(call: Node) => FunctionDeclaration | undefined} calleeOf the function of a call that can be inlined
 * @property {(local: Local) => boolean} isConstant whether a variable never changes
 */

/** @param {Chunk} chunk */
export function inlineStatements(chunk) {
  const calleeOf = calleesIn(chunk)
  countCalls(chunk, calleeOf)
  const constants = new Set([...usesIn(chunk)].flatMap(([local, { writes }]) => (writes === 0 ? local : [])))
  /**
   * Whether everything in a function has been inlined. A recursive one cannot be.
   *
   * @type {Map<FunctionDeclaration, 'begun' | 'done' | 'recursive'>}
   */
  const states = new Map()
  /** @type {Work} */
  const work = {
    isConstant: (local) => constants.has(local),
    calleeOf: (call) => {
      const callee = calleeOf(call)
      if (!callee) return undefined
      if (states.get(callee) === 'begun') states.set(callee, 'recursive')
      if (!states.has(callee)) {
        states.set(callee, 'begun')
        callee.body = inBlock(callee.body)
        if (states.get(callee) === 'begun') states.set(callee, 'done')
        callee.stays ??= isTooLong(callee)
      }
      return states.get(callee) === 'done' && !callee.stays ? callee : undefined
    },
  }
  /** @param {Statement[]} block @returns {Statement[]} */
  const inBlock = (block) => block.flatMap((statement) => inStatement(statement))

  /** @param {Statement} statement @returns {Statement[]} */
  const inStatement = (statement) => {
    const instead = replaceWhole(statement, work) ?? hoistCall(statement, work)
    if (instead) return inBlock(instead)
    for (const inner of blocksOf(statement)) inner.body = inBlock(inner.body)
    return [statement]
  }
  chunk.body = inBlock(chunk.body)
}

/**
 * Counts the places where each function is called, before there are copies.
 *
 * @param {Chunk} chunk
 * @param {Work['calleeOf']} calleeOf
 */
function countCalls(chunk, calleeOf) {
  /** @type {Map<FunctionDeclaration, number>} */
  const counts = new Map()
  walk(chunk, (node) => {
    const callee = calleeOf(node)
    if (callee) counts.set(callee, (counts.get(callee) ?? 0) + 1)
  })
  for (const [fn, count] of counts) fn.calls ??= count
}

/** @param {FunctionDeclaration} callee */
function isTooLong({ body, calls = 0 }) {
  let size = 0
  walkAll(body, ({ type }) => {
    size += /Statement$/.test(type) ? 1 : 0
  })
  return size > SHORT && (calls - 1) * size > MAX_ADDED
}

/** The nodes of a statement that have a block of their own. @param {Statement} statement @returns {(Statement & { body: Statement[] } | Clause | FunctionDeclaration)[]} */
function blocksOf(statement) {
  if ('body' in statement) return [statement]
  if (statement.type === 'IfStatement') return statement.clauses
  if (statement.type !== 'AssignmentStatement') return []
  return statement.init.filter((value) => value.type === 'FunctionDeclaration')
}

/**
 * The replacement of a statement that is only a call and the assignment of its results.
 *
 * @param {Statement} statement
 * @param {Work} work
 * @returns {Statement[] | undefined}
 */
function replaceWhole(statement, { calleeOf, isConstant }) {
  const [call, ...more] = valuesOf(statement)
  if (call?.type !== 'CallExpression' || more.length > 0) return undefined
  const callee = calleeOf(call)
  if (!callee) return undefined
  if (statement.type === 'CallStatement') {
    const replace = (/** @type {Expression[]} */ results) =>
      results.filter((result) => !isPure(result)).map(asStatement)
    return expandCall(callee, call, { replace, isConstant })
  }
  if (statement.type === 'ReturnStatement') return expandCall(callee, call, { isConstant })
  if (statement.type !== 'LocalStatement' && statement.type !== 'AssignmentStatement') return undefined
  const targets = statement.variables.flatMap((each) => (each.type === 'Identifier' && each.local) || [])
  if (targets.length < statement.variables.length) return undefined
  const replace = (/** @type {Expression[]} */ results) => [assignment(targets, results)]
  const body = expandCall(callee, call, { replace, isWanted: true, isConstant })
  return body && statement.type === 'LocalStatement' ? [declaration(targets, []), ...body] : body
}

/** The values of a statement that may be only a call. @param {Statement} statement @returns {Expression[]} */
function valuesOf(statement) {
  switch (statement.type) {
    case 'CallStatement':
      return [statement.expression]
    case 'ReturnStatement':
      return statement.arguments
    case 'LocalStatement':
    case 'AssignmentStatement':
      return statement.init
    default:
      return []
  }
}

/** An unused result that has to be evaluated. @param {Expression} result @returns {Statement} */
const asStatement = (result) =>
  result.type === 'CallExpression'
    ? { type: 'CallStatement', expression: result }
    : declaration([{ name: '_' }], [result])

/**
 * A statement whose first call that can be inlined is moved before it.
 *
 * @param {Statement} statement
 * @param {Work} work
 * @returns {Statement[] | undefined}
 */
function hoistCall(statement, { calleeOf, isConstant }) {
  /** Expressions that are evaluated before the call. @type {Node[]} */
  const before =
    statement.type === 'AssignmentStatement'
      ? statement.variables.filter((each) => each.type !== 'Identifier' || !each.local)
      : []
  /** @type {{ call: CallExpression, callee: FunctionDeclaration } | undefined} */
  let found
  const look = (/** @type {Node} */ node) => {
    if (found || node.type === 'FunctionDeclaration') return
    if (node.type === 'LogicalExpression') {
      look(node.left)
      before.push(node.right)
      return
    }
    for (const child of below(node)) look(child)
    if (found) return
    const callee = calleeOf(node)
    if (callee && node.type === 'CallExpression' && returnsCleanly(callee) && canMoveBefore(callee, before)) {
      found = { call: node, callee }
    }
    before.push(node)
  }
  for (const each of evaluatedFirst(statement)) look(each)
  if (!found) return undefined
  const { call, callee } = found
  const result = { name: `${calledName(call)}_result` }
  const replace = (/** @type {Expression[]} */ values) => [assignment([result], values)]
  const body = expandCall(callee, call, { replace, isWanted: true, isConstant })
  if (!body) return undefined
  rewrite(statement, { expression: (node) => (node === call ? identifier(result) : node) })
  return [declaration([result], []), ...body, statement]
}

/** @param {CallExpression} call of a function, or of an entry of a table of functions */
function calledName({ base }) {
  const named = base.type === 'IndexExpression' ? base.base : base
  return named.type === 'Identifier' ? named.name : ''
}

/**
 * Expressions that a statement always evaluates, once and before anything else.
 *
 * @param {Statement} statement
 * @returns {Expression[]}
 */
function evaluatedFirst(statement) {
  if (statement.type === 'IfStatement') return statement.clauses.slice(0, 1).flatMap(({ condition }) => condition ?? [])
  if (statement.type === 'ForNumericStatement') return [statement.start, statement.end]
  return valuesOf(statement)
}

/**
 * Whether a function may run before the expressions that are otherwise evaluated first.
 *
 * @param {FunctionDeclaration} callee
 * @param {readonly Node[]} before
 */
function canMoveBefore(callee, before) {
  const assigned = assignedIn(callee.body)
  const acts = actsOutside(callee.body)
  let fills = false
  walk(callee, (node) => {
    if (node.type !== 'AssignmentStatement') return
    fills ||= node.variables.some((each) => each.type !== 'Identifier' || !each.local)
  })
  let isFine = true
  walkAll(before, (node) => {
    if (node.type === 'Identifier' && node.local && assigned.has(node.local)) isFine = false
    if (fills && node.type === 'IndexExpression') isFine = false
  })
  return isFine && !(acts && actsOutside(before))
}

/** Whether all ways through a function return, each at its end. @param {FunctionDeclaration} callee */
const returnsCleanly = (callee) => replaceReturns(callee.body, () => [], true) !== undefined
