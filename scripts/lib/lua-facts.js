// What can be said of a tree of Lua without running it.
import { below, declaredBy, walk } from './lua-tree.js'

/** @typedef {import('./lua-tree.js').Node} Node */
/** @typedef {import('./lua-tree.js').Local} Local */

/** What our scripts call these computes and changes nothing; redis is asked through `call` and `tryCall` alone. */
const PURE = new Set(
  'floor ceil max min packBytes unpackBytes sub rep format concat tonumber tostring type redis struct math string table'.split(
    ' ',
  ),
)

/** What asks redis, which changes no variable of ours. */
const REDIS = new Set(['call', 'tryCall'])

/** Whether a call changes nothing, whatever its arguments do. @param {Node} call */
function isPureCall({ base }) {
  return base.type === 'Identifier' && PURE.has(base.name)
}

/** Whether evaluating it changes nothing, so that it may be left out. @param {Node} node @returns {boolean} */
export function isPure(node) {
  if (node.type === 'FunctionDeclaration') return true
  if (node.type === 'CallExpression' && !isPureCall(node)) return false
  return below(node).every(isPure)
}

/** Of a literal, whether Lua takes it for true. @param {Node} node @returns {boolean | undefined} undefined of anything else */
export function truthOf(node) {
  if (node.type === 'BooleanLiteral') return node.value
  if (node.type === 'NilLiteral') return false
  return isLiteral(node) ? true : undefined
}

/** @param {Node} node */
export const isLiteral = (node) => /Literal$/.test(node.type)

/**
 * How a local variable is used in a tree.
 *
 * @typedef {object} Uses
 * @property {number} reads where its value is wanted
 * @property {number} writes assignments to it, the declaration apart
 * @property {number} fills assignments to entries of it
 * @property {Node} [init] what it is declared with: nil for nothing; undefined if that cannot be told
 * @property {Node[]} entries of a table, where entries are read or written
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
  /** Identifiers that are no reads. */
  const other = new Set()
  walk(tree, (node) => {
    for (const each of declaredBy(node)) other.add(each)
    if (node.type === 'LocalStatement') {
      for (const [i, { local }] of node.variables.entries()) of(local).init = initOf(node, i)
    } else if (node.type === 'AssignmentStatement') {
      for (const each of node.variables) {
        if (each.local) of(each.local).writes++
        if (each.base?.local) of(each.base.local).fills++
        other.add(each)
        other.add(each.base)
      }
    }
    if (node.type === 'IndexExpression' && node.base.local) of(node.base.local).entries.push(node)
    if (node.type === 'Identifier' && node.local && !other.has(node)) of(node.local).reads++
  })
  return all
}

/** What a declaration says of its `i`-th variable. @param {Node} node @param {number} i @returns {Node | undefined} */
function initOf({ init, variables }, i) {
  if (init.length === variables.length) return init[i]
  return init.length === 0 ? { type: 'NilLiteral', value: null, raw: 'nil' } : undefined
}

/**
 * Tables of functions: every entry that is made is a function, under a number, and made once.
 *
 * @param {Node} chunk
 * @returns {Map<Local, Map<number, Node>>}
 */
export function functionTables(chunk) {
  /** @type {Map<Local, Map<number, Node>>} */
  const tables = new Map()
  for (const [local, { init, reads, writes, fills, entries }] of usesIn(chunk)) {
    const isTable = init?.type === 'TableConstructorExpression' && init.fields.length === 0 && writes === 0
    if (isTable && reads + fills === entries.length) tables.set(local, new Map())
  }
  walk(chunk, (node) => {
    if (node.type !== 'AssignmentStatement') return
    for (const [i, target] of node.variables.entries()) {
      const table = tables.get(target.base?.local)
      const made = node.init[i]
      const isFit = made?.type === 'FunctionDeclaration' && target.index?.type === 'NumericLiteral'
      if (table && isFit && !table.has(target.index.value)) table.set(target.index.value, made)
      else if (table) tables.delete(target.base.local)
    }
  })
  return tables
}

/** The function that an entry of a table is known to be. @param {ReturnType<typeof functionTables>} tables @param {Node} node */
export function functionIn(tables, { base, index }) {
  return index?.type === 'NumericLiteral' ? tables.get(base.local)?.get(index.value) : undefined
}

/** Identifiers and entries that are declared or assigned. @param {Node} chunk @returns {Set<Node>} */
export function targetsIn(chunk) {
  const targets = new Set()
  walk(chunk, ({ type, variables }) => {
    if (type === 'AssignmentStatement' || type === 'LocalStatement') for (const each of variables) targets.add(each)
  })
  return targets
}

/** The variables of its surroundings that a piece of code assigns. @param {Node[]} nodes @returns {Set<Local>} */
export function assignedIn(nodes) {
  const assigned = new Set()
  for (const node of nodes) {
    walk(node, (each) => {
      if (each.type === 'AssignmentStatement') for (const { local } of each.variables) if (local) assigned.add(local)
    })
  }
  return assigned
}

/** Whether something in it asks redis, or calls a function of the script's own. @param {Node[]} nodes */
export function callsOut(nodes) {
  return anyCall(nodes, (call) => !isPureCall(call))
}

/** Whether something in it calls a function of the script's own, which may assign variables. @param {Node[]} nodes */
export function callsOurs(nodes) {
  const isGiven = (/** @type {Node} */ { type, local, name }) =>
    type === 'MemberExpression' || (type === 'Identifier' && !local) || PURE.has(name) || REDIS.has(name)
  return anyCall(nodes, ({ base }) => !isGiven(base))
}

/** @param {Node[]} nodes @param {(call: Node) => boolean} fits */
function anyCall(nodes, fits) {
  let found = false
  for (const node of nodes) {
    walk(node, (each) => {
      found ||= each.type === 'CallExpression' && fits(each)
    })
  }
  return found
}

/** Whether a block leaves the loop around it. @param {Node[]} nodes @returns {boolean} */
export function breaksOut(nodes) {
  return nodes.some((node) => {
    if (node.type === 'BreakStatement') return true
    if (/^(While|For)/.test(node.type) || node.type === 'FunctionDeclaration') return false
    return breaksOut(below(node))
  })
}

/** Whether a node contains a return of the function it is in. @param {Node} node @returns {boolean} */
export function returnsIn(node) {
  if (node.type === 'ReturnStatement') return true
  return node.type !== 'FunctionDeclaration' && below(node).some(returnsIn)
}
