// Simplifies Lua without changing what it does: what is known is worked out, what is not needed goes.
import { breaksOut, functionIn, functionTables, isLiteral, isPure, targetsIn, truthOf, usesIn } from './lua-facts.js'
import { boolean, copy, declaration, identifier, nil, number, rewrite, walk } from './lua-tree.js'

/** @typedef {import('./lua-tree.js').Node} Node */
/** @typedef {import('./lua-tree.js').Local} Local */

/**
 * Puts numbers in the place of local variables of which they are known, by name.
 *
 * @param {Node} chunk
 * @param {Readonly<Record<string, number>>} known
 */
export function settleKnown(chunk, known) {
  const missing = new Set(Object.keys(known))
  const targets = targetsIn(chunk)
  rewrite(chunk, (node) => {
    if (!node.local || known[node.name] === undefined || targets.has(node)) return node
    missing.delete(node.name)
    return number(/** @type {number} */ (known[node.name]))
  })
  if (missing.size > 0) throw new Error(`lua: there is no ${[...missing].join(', ')} to be known`)
}

/** @type {Record<string, (a: any, b: any) => number | boolean>} */
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

/** Works out what can be: operators between literals, conditions that are settled, loops that run once or never. @param {Node} chunk */
export function foldConstants(chunk) {
  const tables = functionTables(chunk)
  const targets = targetsIn(chunk)
  rewrite(chunk, (node) => {
    switch (node.type) {
      case 'BinaryExpression':
        return folded(node)
      case 'LogicalExpression':
        return chosen(node)
      case 'UnaryExpression': {
        const truth = node.operator === 'not' ? truthOf(node.argument) : undefined
        return truth === undefined ? node : boolean(!truth)
      }
      case 'IndexExpression':
        return tables.has(node.base.local) && !targets.has(node) && !functionIn(tables, node) && isLiteral(node.index)
          ? nil()
          : node
      case 'IfStatement':
        return decided(node, (condition) => (functionIn(tables, condition) ? boolean(true) : condition))
      case 'ForNumericStatement':
        return atMostOnce(node)
      default:
        return node
    }
  })
}

/** What a comparison says of a number and itself. @type {Record<string, boolean>} */
const OF_ITSELF = { '<': false, '>': false, '~=': false, '<=': true, '>=': true, '==': true }

/** @param {Node} node @returns {Node} */
function folded(node) {
  const { operator, left, right } = node
  const ofItself = left.local && left.local === right.local ? OF_ITSELF[operator] : undefined
  if (ofItself !== undefined) return boolean(ofItself)
  if (operator === '+' && left.value === 0) return right
  if (right.type !== 'NumericLiteral') return node
  if (left.type === 'BinaryExpression' && left.right.type === 'NumericLiteral') return summed(node)
  if (left.type !== 'NumericLiteral') return node
  const value = COMPUTE[operator]?.(left.value, right.value)
  if (typeof value === 'boolean') return boolean(value)
  // Negative numbers are not literals.
  return value !== undefined && value >= 0 ? number(value) : node
}

/** Two steps up or down as one, which may be none: arithmetic also makes numbers of texts. @param {Node} node @returns {Node} */
function summed(node) {
  const [first, second] = [SIGNS[node.left.operator], SIGNS[node.operator]]
  if (first === undefined || second === undefined) return node
  const sum = first * node.left.right.value + second * node.right.value
  return { ...node, operator: sum < 0 ? '-' : '+', left: node.left.left, right: number(Math.abs(sum)) }
}

/** @type {Record<string, number>} */
const SIGNS = { '+': 1, '-': -1 }

/** @param {Node} node @returns {Node} */
function chosen(node) {
  const truth = truthOf(node.left)
  if (truth === undefined) return node
  if (truth !== (node.operator === 'and')) return node.left
  return node.right.type === 'CallExpression' ? { ...node.right, inParens: true } : node.right
}

/** @param {Node} node @param {(condition: Node) => Node} settle @returns {Node | Node[]} */
function decided(node, settle) {
  const clauses = []
  for (const clause of node.clauses) {
    const condition = clause.condition && settle(asCondition(clause.condition))
    const truth = condition ? truthOf(condition) : true
    if (truth === false) continue
    clauses.push({ ...clause, condition })
    if (truth) break
  }
  const last = clauses.at(-1)
  if (!last) return []
  if (last.condition && truthOf(last.condition)) {
    last.type = 'ElseClause'
    last.condition = undefined
  }
  if (last === clauses[0] && !last.condition) return block(last.body)
  while (clauses.at(-1)?.body.length === 0 && isPure(clauses.at(-1).condition ?? nil())) clauses.pop()
  if (clauses.length === 0) return []
  clauses[0].type = 'IfClause'
  return { ...node, clauses }
}

/** What is left of a condition, of which only the truth counts. @param {Node} node @returns {Node} */
function asCondition(node) {
  if (node.type !== 'LogicalExpression') return node
  const left = asCondition(node.left)
  const right = asCondition(node.right)
  const isAnd = node.operator === 'and'
  const truth = truthOf(right)
  if (truth === isAnd) return left
  if (truth === !isAnd && isPure(left)) return right
  return chosen({ ...node, left, right })
}

/** @param {Node} node @returns {Node | Node[]} */
function atMostOnce(node) {
  const { start, end, step, variable, body } = node
  if (start.type !== 'NumericLiteral' || end.type !== 'NumericLiteral') return node
  // Steps down are a minus before a literal.
  if (step && step.type !== 'NumericLiteral') return node
  if (start.value > end.value) return []
  if (step || start.value < end.value || breaksOut(body)) return node
  return block([declaration([variable.local], [start]), ...body])
}

/** @param {Node[]} body */
const block = (body) => ({ type: 'DoStatement', body, isOurs: true })

/** Puts in the place of variables that stay what they are declared with: literals, and other variables that stay. @param {Node} chunk */
export function propagate(chunk) {
  const uses = usesIn(chunk)
  const stays = (/** @type {Local} */ local) => (uses.get(local)?.writes ?? 0) === 0
  const targets = targetsIn(chunk)
  rewrite(chunk, (node) => {
    if (node.type !== 'Identifier' || !node.local || targets.has(node) || !stays(node.local)) return node
    const init = uses.get(node.local)?.init
    if (!init) return node
    return isLiteral(init) || (init.local && stays(init.local)) ? { ...init } : node
  })
}

/** Makes variables of the entries of tables that are only ever used by the number of an entry. @param {Node} chunk */
export function splitTables(chunk) {
  const uses = usesIn(chunk)
  const tables = functionTables(chunk)
  /** @type {Map<Local, Map<number, Local>>} */
  const split = new Map()
  for (const [local, { init, reads, writes, fills, entries }] of uses) {
    if (init?.type !== 'TableConstructorExpression' || init.fields.length > 0 || writes > 0) continue
    if (tables.get(local)?.size) continue
    if (reads + fills !== entries.length || !entries.every(({ index }) => index.type === 'NumericLiteral')) continue
    const keys = [...new Set(entries.map(({ index }) => index.value))].sort((a, b) => a - b)
    split.set(local, new Map(keys.map((key) => [key, { name: keys.length > 1 ? `${local.name}${key}` : local.name }])))
  }
  rewrite(chunk, (node) => {
    const entry = node.type === 'IndexExpression' && split.get(node.base.local)?.get(node.index.value)
    if (entry) return identifier(entry)
    if (node.type !== 'LocalStatement' || !node.variables.some((/** @type {Node} */ { local }) => split.has(local)))
      return node
    return node.variables.flatMap((/** @type {Node} */ variable, /** @type {number} */ i) => {
      const parts = split.get(variable.local)
      if (!parts) return declaration([variable.local], [node.init[i]])
      return parts.size > 0 ? declaration([...parts.values()], []) : []
    })
  })
}

/** Leaves out variables that nobody reads, with what they are given, and functions that nobody calls. @param {Node} chunk */
export function dropUnused(chunk) {
  const uses = usesIn(chunk)
  const isUnread = (/** @type {Local} */ local) => !uses.get(local)?.reads
  /** @param {Node} target @param {boolean} isDeclared */
  const isDead = ({ local, base }, isDeclared) => {
    if (local) return isUnread(local) && !(isDeclared && (uses.get(local)?.writes || uses.get(local)?.fills))
    return base.local && isUnread(base.local) && uses.get(base.local)?.init?.type === 'TableConstructorExpression'
  }
  rewrite(chunk, (node) => {
    if (node.type === 'FunctionDeclaration' && node.isLocal && isUnread(node.identifier.local)) return []
    if (node.type === 'DoStatement' && node.body.length === 0) return []
    if (node.type !== 'LocalStatement' && node.type !== 'AssignmentStatement') return node
    const { init, variables } = node
    const kept = variables.map((/** @type {Node} */ target, /** @type {number} */ i) => {
      const value = init.length === variables.length || variables.length === 1 ? init[i] : init[0]
      return !isDead(target, node.type === 'LocalStatement') || !(value === undefined || isPure(value))
    })
    const isPaired = init.length === 0 || init.length === variables.length
    if (kept.every(Boolean) || (!isPaired && kept.some(Boolean))) return node
    if (!kept.some(Boolean)) return []
    const keep = (/** @type {Node[]} */ list) => list.filter((_, i) => kept[i])
    return { ...node, variables: keep(variables), init: keep(init) }
  })
}

/**
 * Takes blocks of `do` apart: those that were made here, or all of them.
 *
 * @param {Node} chunk
 * @param {boolean} all
 */
export function flatten(chunk, all) {
  rewrite(chunk, (node) => (node.type === 'DoStatement' && (all || node.isOurs) ? node.body : node))
  // Nothing may follow what ends a block, and now something may.
  walk(chunk, ({ body }) => {
    const end = Array.isArray(body) ? body.findIndex(({ type }) => /^(Return|Break)/.test(type)) : -1
    if (end >= 0) body.length = end + 1
  })
}

/** Declares variables with what they are assigned right after. @param {Node} chunk */
export function mergeDeclarations(chunk) {
  const mergeIn = (/** @type {Node[]} */ body) => {
    for (let i = 0; i + 1 < body.length; i++) {
      const [a, b] = [body[i], body[i + 1]]
      if (a.type !== 'LocalStatement' || a.init.length > 0 || b.type !== 'AssignmentStatement') continue
      if (a.variables.length !== b.variables.length) continue
      const locals = a.variables.map((/** @type {Node} */ variable) => variable.local)
      if (!b.variables.every((/** @type {Node} */ { local }, /** @type {number} */ j) => local === locals[j])) continue
      if (!readsAny(b.init, locals) && b.init[0].type !== 'FunctionDeclaration')
        body.splice(i, 2, { ...a, init: b.init })
    }
  }
  walk(chunk, ({ body }) => Array.isArray(body) && mergeIn(body))
}

/** @param {Node[]} nodes @param {Local[]} locals */
function readsAny(nodes, locals) {
  let found = false
  for (const node of nodes) {
    walk(node, ({ local }) => {
      found ||= locals.includes(local)
    })
  }
  return found
}

/**
 * Writes the larger and the smaller of two numbers as a comparison, which costs less than a call, where they can be had
 * twice at little cost.
 *
 * @param {Node} chunk
 */
export function compareDirectly(chunk) {
  rewrite(chunk, (node) => {
    const operator = node.type === 'CallExpression' && COMPARISONS[node.base.name]
    if (!operator || node.arguments.length !== 2 || !node.arguments.every(isCheap)) return node
    const [left, right] = node.arguments
    const comparison = { type: 'BinaryExpression', operator, left: copy(left), right: copy(right) }
    const first = { type: 'LogicalExpression', operator: 'and', left: comparison, right: left }
    return { type: 'LogicalExpression', operator: 'or', left: first, right }
  })
}

/** @type {Record<string, string>} */
const COMPARISONS = { max: '>', min: '<' }

/** @param {Node} node */
function isCheap(node) {
  let size = 0
  walk(node, ({ type }) => {
    size += /^(Call|Logical)/.test(type) ? 10 : 1
  })
  return size <= 9
}
