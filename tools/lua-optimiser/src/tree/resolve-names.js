// Resolves each name in a tree to its local variable.
import { below, declaredBy } from './walk.js'

/** @import { Chunk, Identifier, Local, Node, Statement } from './nodes.js' */

/** The variables in scope, by name. @typedef {Map<string, Local>} Scope */

/** @param {Chunk} chunk */
export function resolveNames(chunk) {
  resolveBlock(chunk.body, new Map())
}

/** @param {readonly Statement[]} block @param {Scope} around */
function resolveBlock(block, around) {
  const scope = new Map(around)
  for (const statement of block) resolveIn(statement, scope)
}

/** @param {Node} node @param {Scope} scope */
function resolveIn(node, scope) {
  if (node.type === 'Identifier') {
    const local = scope.get(node.name)
    if (local) node.local = local
    return
  }
  // A local function is in scope in its own body. Other variables are not in their initial values.
  const own = node.type === 'FunctionDeclaration' ? node.identifier : null
  if (own) declare(own, scope)
  /** @type {readonly Node[]} */
  const declared = declaredBy(node)
  /** @type {readonly Node[]} */
  const body = 'body' in node ? node.body : []
  for (const child of below(node)) {
    if (!declared.includes(child) && !body.includes(child)) resolveIn(child, scope)
  }
  const inside = node.type === 'LocalStatement' ? scope : new Map(scope)
  for (const each of declaredBy(node)) if (each !== own) declare(each, inside)
  if ('body' in node) resolveBlock(node.body, inside)
}

/** @param {Identifier} node @param {Scope} scope */
function declare(node, scope) {
  const local = { name: node.name }
  node.local = local
  scope.set(node.name, local)
}
