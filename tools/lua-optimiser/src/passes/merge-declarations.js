// Pass: merges declarations with the assignments that follow them.
import { walk, walkAll } from '../tree/walk.js'

/** @import { Chunk, Expression, Local, Statement } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function mergeDeclarations(chunk) {
  walk(chunk, (node) => {
    if ('body' in node) mergeIn(node.body)
  })
}

/** @param {Statement[]} body */
function mergeIn(body) {
  for (let i = 0; i + 1 < body.length; i++) {
    const [a, b] = [body[i], body[i + 1]]
    if (a?.type !== 'LocalStatement' || a.init.length > 0 || b?.type !== 'AssignmentStatement') continue
    if (a.variables.length !== b.variables.length) continue
    const locals = a.variables.map(({ local }) => local)
    if (!b.variables.every((each, j) => each.type === 'Identifier' && each.local === locals[j])) continue
    if (!readsAny(b.init, locals) && b.init[0]?.type !== 'FunctionDeclaration')
      body.splice(i, 2, { ...a, init: b.init })
  }
}

/** @param {readonly Expression[]} nodes @param {readonly Local[]} locals */
function readsAny(nodes, locals) {
  let found = false
  walkAll(nodes, (node) => {
    if (node.type === 'Identifier' && node.local) found ||= locals.includes(node.local)
  })
  return found
}
