// Pass: replaces variables that never change by their initial values, where these are literals or other variables that never
// change.
import { isLiteral } from '../facts/literals.js'
import { targetsIn, usesIn } from '../facts/uses.js'
import { rewrite } from '../tree/walk.js'

/** @import { Chunk, Local } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function propagateValues(chunk) {
  const uses = usesIn(chunk)
  const isConstant = (/** @type {Local} */ local) => (uses.get(local)?.writes ?? 0) === 0
  const targets = targetsIn(chunk)
  rewrite(chunk, {
    expression: (node) => {
      if (node.type !== 'Identifier' || !node.local || targets.has(node) || !isConstant(node.local)) return node
      const init = uses.get(node.local)?.init
      if (!init) return node
      const isOther = init.type === 'Identifier' && init.local && isConstant(init.local)
      return isLiteral(init) || isOther ? { ...init } : node
    },
  })
}
