// Walks through a tree: the nodes below one, all of them, and their replacement.

/** @import { Declared, Expression, Node, Statement } from './nodes.js' */

/** The parts of each kind of node, in the order in which they are evaluated or declared. @type {Record<Node['type'], readonly string[]>} */
const PARTS = {
  Chunk: ['body'],
  LocalStatement: ['init', 'variables'],
  AssignmentStatement: ['init', 'variables'],
  CallStatement: ['expression'],
  ReturnStatement: ['arguments'],
  BreakStatement: [],
  DoStatement: ['body'],
  IfStatement: ['clauses'],
  IfClause: ['condition', 'body'],
  ElseifClause: ['condition', 'body'],
  ElseClause: ['body'],
  WhileStatement: ['condition', 'body'],
  ForNumericStatement: ['start', 'end', 'step', 'variable', 'body'],
  ForGenericStatement: ['iterators', 'variables', 'body'],
  FunctionDeclaration: ['identifier', 'parameters', 'body'],
  MarkStatement: [],
  CallExpression: ['base', 'arguments'],
  IndexExpression: ['base', 'index'],
  MemberExpression: ['base'],
  BinaryExpression: ['left', 'right'],
  LogicalExpression: ['left', 'right'],
  UnaryExpression: ['argument'],
  TableConstructorExpression: ['fields'],
  TableValue: ['value'],
  Identifier: [],
  NumericLiteral: [],
  StringLiteral: [],
  BooleanLiteral: [],
  NilLiteral: [],
}

/** Whether the passes know this kind of node. @param {string} type */
export const isSupported = (type) => Object.hasOwn(PARTS, type)

/** A node by the names of its parts. @typedef {Record<string, Node | Node[] | null | undefined>} Parts */

/** The only place that reads a node by names of parts, for code that is the same for every kind. @param {Node} node */
const partsOf = (node) => /** @type {Parts} */ (/** @type {unknown} */ (node))

/** The nodes right below one, in the order of evaluation. @param {Node} node @returns {Node[]} */
export function below(node) {
  const parts = partsOf(node)
  // Walks spend most of their time here, and a loop takes a fraction of the time of `flatMap`.
  /** @type {Node[]} */
  const nodes = []
  for (const part of PARTS[node.type]) {
    const child = parts[part]
    if (Array.isArray(child)) for (const each of child) nodes.push(each)
    else if (child) nodes.push(child)
  }
  return nodes
}

/** Visits a node and all below it, from the outside in. @param {Node} node @param {(node: Node) => void} visit */
export function walk(node, visit) {
  visit(node)
  for (const child of below(node)) walk(child, visit)
}

/** Visits each of some nodes and all below them. @param {readonly Node[]} nodes @param {(node: Node) => void} visit */
export function walkAll(nodes, visit) {
  for (const node of nodes) walk(node, visit)
}

/**
 * Changes to the nodes of a tree. A statement may become several or none. Names that declare a variable are not offered.
 * Targets of assignments are.
 *
 * @typedef {object} Changes
 * @property {(node: Expression) => Expression} [expression]
 * @property {(node: Statement) => Statement | Statement[]} [statement]
 */

/** Changes all below a node, from the inside out. @param {Node} node @param {Changes} changes */
export function rewrite(node, changes) {
  const parts = partsOf(node)
  const declared = /** @type {Node[]} */ (declaredBy(node))
  for (const part of PARTS[node.type]) {
    const child = parts[part]
    if (!child) continue
    for (const each of Array.isArray(child) ? child : [child]) rewrite(each, changes)
    if (part === 'body') {
      if (changes.statement) parts[part] = /** @type {Statement[]} */ (child).flatMap(changes.statement)
    } else if (changes.expression && part !== 'clauses' && part !== 'fields') {
      const { expression } = changes
      const change = (/** @type {Node} */ each) =>
        declared.includes(each) ? each : expression(/** @type {Expression} */ (each))
      parts[part] = Array.isArray(child) ? child.map(change) : change(child)
    }
  }
}

/**
 * A copy of a node, with local variables of its own for those that are declared in it.
 *
 * @template {Node} T
 * @param {T} node
 * @returns {T}
 */
export function copy(node) {
  /** @type {Map<import('./nodes.js').Local, import('./nodes.js').Local>} */
  const fresh = new Map()
  walk(node, (each) => {
    for (const { local } of declaredBy(each)) fresh.set(local, { name: local.name })
  })
  return copied(node, fresh)
}

/**
 * @template {Node} T
 * @param {T} node
 * @param {ReadonlyMap<import('./nodes.js').Local, import('./nodes.js').Local>} fresh
 * @returns {T}
 */
function copied(node, fresh) {
  const result = { ...node }
  if (result.type === 'Identifier' && result.local) result.local = fresh.get(result.local) ?? result.local
  const parts = partsOf(result)
  for (const part of PARTS[node.type]) {
    const child = parts[part]
    if (Array.isArray(child)) parts[part] = child.map((each) => copied(each, fresh))
    else if (child) parts[part] = copied(child, fresh)
  }
  return result
}

/** The names with which a node declares variables, if any. @param {Node} node @returns {Declared[]} */
export function declaredBy(node) {
  switch (node.type) {
    case 'LocalStatement':
    case 'ForGenericStatement':
      return node.variables
    case 'ForNumericStatement':
      return [node.variable]
    case 'FunctionDeclaration':
      return [...(node.identifier ? [node.identifier] : []), ...node.parameters]
    default:
      return []
  }
}
