// Puts the bodies of functions in the place of calls of them: Redis makes every function of a script anew on every run,
// and one that is called often costs more for the call than for what it does.
import {
  assignedIn,
  callsOurs,
  callsOut,
  functionIn,
  functionTables,
  isLiteral,
  isPure,
  returnsIn,
  usesIn,
} from './lua-facts.js'
import { below, copy, declaration, identifier, nil, rewrite, walk } from './lua-tree.js'

/** @typedef {import('./lua-tree.js').Node} Node */
/** @typedef {import('./lua-tree.js').Local} Local */

/**
 * Of calls in a tree, which function is called; undefined where that cannot be told.
 *
 * @param {Node} chunk
 * @returns {(call: Node) => Node | undefined}
 */
function calleesIn(chunk) {
  const tables = functionTables(chunk)
  const uses = usesIn(chunk)
  /** @type {Map<Local, Node>} */
  const named = new Map()
  walk(chunk, (node) => {
    if (node.type !== 'FunctionDeclaration' || !node.identifier) return
    if (!uses.get(node.identifier.local)?.writes) named.set(node.identifier.local, node)
  })
  return ({ type, base }) => {
    if (type !== 'CallExpression') return undefined
    return base.local ? named.get(base.local) : functionIn(tables, base)
  }
}

/** Inlines functions that only return an expression, wherever they are called. @param {Node} chunk */
export function inlineExpressions(chunk) {
  const calleeOf = calleesIn(chunk)
  rewrite(chunk, (node) => {
    const callee = calleeOf(node)
    const [only] = callee?.body ?? []
    if (callee?.body.length !== 1 || only.type !== 'ReturnStatement' || only.arguments.length !== 1) return node
    if (mayGiveMore(node, callee)) return node
    // Its arguments are what they are before it runs: what it calls must not be able to change them.
    if (callsOurs(callee.body) && !node.arguments.every(isLiteral)) return node
    const uses = usesIn(only)
    /** @type {Map<Local, Node>} */
    const values = new Map()
    for (const [i, { local }] of callee.parameters.entries()) {
      const argument = node.arguments[i] ?? nil()
      if (!isSimple(argument) && !(isPure(argument) && (uses.get(local)?.reads ?? 0) <= 1)) return node
      values.set(local, argument)
    }
    const holder = { type: 'ReturnStatement', arguments: [copy(only.arguments[0])] }
    rewrite(holder, (each) => (values.has(each.local) ? oneOf(copy(values.get(each.local))) : each))
    const [result] = holder.arguments
    return node.inParens && result.type === 'CallExpression' ? { ...result, inParens: true } : result
  })
}

/** Whether the last argument of a call may be more than one. @param {Node} call @param {Node} callee */
function mayGiveMore(call, callee) {
  return call.arguments.length < callee.parameters.length && call.arguments.at(-1)?.type === 'CallExpression'
}

/** An argument, which is one value wherever it goes. @param {Node} node */
const oneOf = (node) => (node.type === 'CallExpression' ? { ...node, inParens: true } : node)

/** @param {Node} node */
const isSimple = (node) => isLiteral(node) || node.type === 'Identifier'

/** How many statements a function may have and be copied anywhere, and how many its copies may add to a script. */
const SHORT = 6
const MOST_ADDED = 60

/**
 * Inlines the other functions, where all that a statement wants of a call can be had before it. Those that are long and
 * called in many places stay.
 *
 * @param {Node} chunk
 */
export function inlineStatements(chunk) {
  const calleeOf = calleesIn(chunk)
  countCalls(chunk, calleeOf)
  for (const [local, { writes }] of usesIn(chunk)) local.isConstant = writes === 0
  /** Whether all that can be inlined in a function has been; a function that comes to itself cannot be inlined. @type {Map<Node, 'begun' | 'done' | 'recursive'>} */
  const states = new Map()
  /** @param {Node} call */
  const fitCallee = (call) => {
    const callee = calleeOf(call)
    if (!callee) return undefined
    if (states.get(callee) === 'begun') states.set(callee, 'recursive')
    if (!states.has(callee)) {
      states.set(callee, 'begun')
      callee.body = inBlock(callee.body)
      if (states.get(callee) === 'begun') states.set(callee, 'done')
      const size = sizeOf(callee.body)
      callee.stays ??= size > SHORT && (callee.calls - 1) * size > MOST_ADDED
    }
    return states.get(callee) === 'done' && !callee.stays ? callee : undefined
  }
  /** @param {Node[]} block @returns {Node[]} */
  const inBlock = (block) => block.flatMap((statement) => inStatement(statement))

  /** @param {Node} statement @returns {Node[]} */
  const inStatement = (statement) => {
    const instead = whole(statement, fitCallee) ?? hoisted(statement, fitCallee)
    if (instead) return inBlock(instead)
    for (const inner of blocksOf(statement)) inner.body = inBlock(inner.body)
    return [statement]
  }
  chunk.body = inBlock(chunk.body)
}

/** Writes down of every function in how many places it is called, before there are copies. @param {Node} chunk @param {(call: Node) => Node | undefined} calleeOf */
function countCalls(chunk, calleeOf) {
  /** @type {Map<Node, number>} */
  const counts = new Map()
  walk(chunk, (node) => {
    const callee = calleeOf(node)
    if (callee) counts.set(callee, (counts.get(callee) ?? 0) + 1)
  })
  for (const [fn, count] of counts) fn.calls ??= count
}

/** How many statements a body has. @param {Node[]} body */
function sizeOf(body) {
  let size = 0
  for (const node of body) walk(node, ({ type }) => (size += /Statement$/.test(type) ? 1 : 0))
  return size
}

/** The nodes of a statement that have a block of their own. @param {Node} statement @returns {Node[]} */
function blocksOf(statement) {
  const found = []
  if (Array.isArray(statement.body)) found.push(statement)
  if (statement.type === 'IfStatement') found.push(...statement.clauses)
  if (statement.type === 'AssignmentStatement') {
    found.push(...statement.init.filter((/** @type {Node} */ { type }) => type === 'FunctionDeclaration'))
  }
  return found
}

/**
 * What stands in the place of a statement that is a call and no more, apart from where its results go.
 *
 * @param {Node} statement
 * @param {(call: Node) => Node | undefined} calleeOf
 * @returns {Node[] | undefined}
 */
function whole(statement, calleeOf) {
  const { type, expression, init, variables, arguments: returned } = statement
  const values = init ?? returned ?? [expression]
  const call = values.length === 1 ? values[0] : undefined
  if (call?.type !== 'CallExpression') return undefined
  const callee = calleeOf(call)
  if (!callee) return undefined
  if (type === 'CallStatement') {
    return expanded(callee, call, (results) => results.filter((result) => !isPure(result)).map(asStatement))
  }
  if (type === 'ReturnStatement') return expanded(callee, call, undefined)
  if (!variables.every((/** @type {Node} */ { local }) => local)) return undefined
  const isDeclaration = type === 'LocalStatement'
  const targets = variables.map((/** @type {Node} */ { local }) => local)
  const body = expanded(callee, call, (results) => [assignment(targets, results)], true)
  return body && (isDeclaration ? [declaration(targets, []), ...body] : body)
}

/** @param {Node} call */
const asStatement = (call) => ({ type: 'CallStatement', expression: call })

/** @param {Local[]} targets @param {Node[]} values @returns {Node} */
const assignment = (targets, values) => ({
  type: 'AssignmentStatement',
  variables: targets.map(identifier),
  init: values.length > 0 ? values : [nil()],
})

/**
 * A statement with its first call that can be inlined taken out, and done before it.
 *
 * @param {Node} statement
 * @param {(call: Node) => Node | undefined} calleeOf
 * @returns {Node[] | undefined}
 */
function hoisted(statement, calleeOf) {
  /** What is evaluated before. @type {Node[]} */
  const before = (statement.variables ?? []).filter((/** @type {Node} */ { local }) => !local)
  /** @type {{ call: Node, callee: Node } | undefined} */
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
    if (callee && !isUnfit(callee) && isIndependent(callee, before)) found = { call: node, callee }
    before.push(node)
  }
  for (const each of evaluatedFirst(statement)) look(each)
  if (!found) return undefined
  const { call, callee } = found
  const result = { name: `${call.base.name ?? call.base.base.name}_result` }
  const body = expanded(callee, call, (values) => [assignment([result], values)], true)
  if (!body) return undefined
  replaceOnce(statement, call, identifier(result))
  return [declaration([result], []), ...body, statement]
}

/** What a statement evaluates once, before anything else, and come what may. @param {Node} statement @returns {Node[]} */
function evaluatedFirst(statement) {
  if (statement.type === 'IfStatement') return [statement.clauses[0].condition]
  if (statement.type === 'CallStatement') return [statement.expression]
  if (statement.type === 'ReturnStatement') return statement.arguments
  if (statement.type === 'ForNumericStatement') return [statement.start, statement.end]
  if (statement.type === 'LocalStatement') return statement.init
  return statement.type === 'AssignmentStatement' ? statement.init : []
}

/** Whether a function may be run before what is otherwise evaluated first. @param {Node} callee @param {Node[]} before */
function isIndependent(callee, before) {
  const assigned = assignedIn(callee.body)
  const calls = callsOut(callee.body)
  let fills = false
  walk(callee, ({ type, variables }) => {
    if (type === 'AssignmentStatement') fills ||= variables.some((/** @type {Node} */ { local }) => !local)
  })
  let isFine = true
  for (const node of before) {
    walk(node, ({ type, local }) => {
      if (assigned.has(local) || (fills && type === 'IndexExpression')) isFine = false
    })
    if (calls && callsOut([node])) isFine = false
  }
  return isFine
}

/** @param {Node} statement @param {Node} call @param {Node} result */
function replaceOnce(statement, call, result) {
  rewrite(statement, (node) => (node === call ? result : node))
}

/** @param {Node} callee */
const isUnfit = (callee) => settled(callee.body, () => [], true) === undefined

/**
 * The body of a function for the arguments of a call.
 *
 * @param {Node} callee
 * @param {Node} call
 * @param {((values: Node[]) => Node[]) | undefined} onReturn what becomes of its returns; undefined: they stay
 * @param {boolean} [always] whether it has to return something
 * @returns {Node[] | undefined} undefined where its returns cannot be told from its flow
 */
function expanded(callee, call, onReturn, always = false) {
  const { parameters, body } = copy(callee)
  const assigned = assignedIn(body)
  const isOpen = callsOurs(body)
  /** @type {Map<Local, Node>} */
  const values = new Map()
  const kept = []
  for (const [i, { local }] of parameters.entries()) {
    const value = call.arguments[i] ?? nil()
    // A variable that the body changes, or may have changed by another function, is not what it was.
    const stays = isLiteral(value) || (value.local && !assigned.has(value.local) && !isOpen)
    if ((stays || isConstant(value)) && !assigned.has(local)) values.set(local, value)
    else kept.push({ local, value })
  }
  const surplus = call.arguments.slice(parameters.length)
  if (!surplus.every(isPure) || mayGiveMore(call, callee)) return undefined
  const block = { type: 'DoStatement', isOurs: true, body }
  rewrite(block, (node) => (values.has(node.local) ? copy(values.get(node.local)) : node))
  const flow = onReturn ? settled(block.body, onReturn, always) : block.body
  if (!flow) return undefined
  block.body = flow
  if (kept.length > 0) {
    block.body.unshift(
      declaration(
        kept.map(({ local }) => local),
        kept.map(({ value }) => value),
      ),
    )
  }
  return [block]
}

/** Whether it is a variable that stays what it is declared with. @param {Node} node */
const isConstant = (node) => node.type === 'Identifier' && (!node.local || node.local.isConstant === true)

/**
 * A body in which its returns are what `onReturn` makes of them, and nothing is done after: what follows an `if` that
 * returns goes into its `else`.
 *
 * @param {Node[]} body
 * @param {(values: Node[]) => Node[]} onReturn
 * @param {boolean} always whether every way through it must return
 * @returns {Node[] | undefined}
 */
function settled(body, onReturn, always) {
  const at = body.findIndex(returnsIn)
  if (at < 0) return always ? undefined : body
  const [node, rest] = [body[at], body.slice(at + 1)]
  const before = body.slice(0, at)
  if (node.type === 'ReturnStatement') return [...before, ...onReturn(node.arguments)]
  if (node.type === 'DoStatement' && rest.length === 0) {
    const inner = settled(node.body, onReturn, always)
    return inner && [...before, { ...node, body: inner }]
  }
  if (node.type !== 'IfStatement') return undefined
  const clauses = node.clauses.map((/** @type {Node} */ clause) => ({ ...clause }))
  if (clauses.at(-1).type !== 'ElseClause') clauses.push({ type: 'ElseClause', body: [] })
  // What follows stands in one place only.
  const goingOn = clauses.filter((/** @type {Node} */ clause) => !alwaysReturns(clause.body))
  if (rest.length > 0 && goingOn.length > 1) return undefined
  if (rest.length > 0 && goingOn.some((/** @type {Node} */ { body: own }) => own.some(returnsIn))) return undefined
  for (const clause of clauses) {
    clause.body = settled(goingOn.includes(clause) ? [...clause.body, ...rest] : clause.body, onReturn, always)
    if (!clause.body) return undefined
  }
  if (clauses.at(-1).body.length === 0) clauses.pop()
  return [...before, { ...node, clauses }]
}

/** @param {Node[]} body @returns {boolean} */
function alwaysReturns(body) {
  const last = body.at(-1)
  if (last?.type === 'ReturnStatement') return true
  if (last?.type === 'DoStatement') return alwaysReturns(last.body)
  if (last?.type !== 'IfStatement' || last.clauses.at(-1).type !== 'ElseClause') return false
  return last.clauses.every((/** @type {Node} */ clause) => alwaysReturns(clause.body))
}
