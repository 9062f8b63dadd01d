// Effects of running a piece of code: they decide what may be left out, and what may change places.
import { below, walkAll } from '../tree/walk.js'

/** @import { CallExpression, Expression, Local, Node } from '../tree/nodes.js' */

/** Functions of these names compute and change nothing. The names are set in shared/names.lua. */
const PURE = new Set(
  'floor ceil max min packBytes unpackBytes sub rep format concat tonumber tostring type redis struct math string table'.split(
    ' ',
  ),
)

/** Calls of Redis, which change no variable of the script. */
const REDIS = new Set(['call', 'tryCall'])

/** Whether a call changes nothing, whatever its arguments do. @param {CallExpression} call */
function isPureCall({ base }) {
  return base.type === 'Identifier' && PURE.has(base.name)
}

/** Whether evaluating it changes nothing, so that it may be left out. @param {Node} node @returns {boolean} */
export function isPure(node) {
  if (node.type === 'FunctionDeclaration') return true
  if (node.type === 'CallExpression' && !isPureCall(node)) return false
  return below(node).every(isPure)
}

/**
 * Whether something in it acts on anything but the script's variables, or calls a function that may.
 *
 * @param {readonly Node[]} nodes
 */
export function actsOutside(nodes) {
  return anyNode(
    nodes,
    (node) => node.type === 'MarkStatement' || (node.type === 'CallExpression' && !isPureCall(node)),
  )
}

/** Whether something in it calls a function of the script's own, which may assign variables. @param {readonly Node[]} nodes */
export function callsOwnFunctions(nodes) {
  return anyNode(nodes, (node) => node.type === 'CallExpression' && !isGiven(node.base))
}

/** Whether the called function is Lua's or Redis's, not the script's own. @param {Expression} base */
function isGiven(base) {
  if (base.type === 'MemberExpression') return true
  return base.type === 'Identifier' && (!base.local || PURE.has(base.name) || REDIS.has(base.name))
}

/** @param {readonly Node[]} nodes @param {(node: Node) => boolean} fits */
function anyNode(nodes, fits) {
  let found = false
  walkAll(nodes, (node) => {
    found ||= fits(node)
  })
  return found
}

/** The variables that a piece of code assigns, other than by declaring them. @param {readonly Node[]} nodes @returns {Set<Local>} */
export function assignedIn(nodes) {
  /** @type {Set<Local>} */
  const assigned = new Set()
  walkAll(nodes, (node) => {
    if (node.type !== 'AssignmentStatement') return
    for (const each of node.variables) if (each.type === 'Identifier' && each.local) assigned.add(each.local)
  })
  return assigned
}
