// Pass: replaces variables that are known beforehand by numbers.
import { targetsIn } from '../facts/uses.js'
import { number } from '../tree/make.js'
import { rewrite } from '../tree/walk.js'

/** @import { Chunk } from '../tree/nodes.js' */

/**
 * @param {Chunk} chunk
 * @param {Readonly<Record<string, number>>} known by the name of a local variable
 */
export function specialise(chunk, known) {
  const missing = new Set(Object.keys(known))
  const targets = targetsIn(chunk)
  rewrite(chunk, {
    expression: (node) => {
      if (node.type !== 'Identifier' || !node.local || targets.has(node)) return node
      const value = known[node.name]
      if (value === undefined) return node
      missing.delete(node.name)
      return number(value)
    },
  })
  if (missing.size > 0) throw new Error(`lua: there is no ${[...missing].join(', ')} to be known`)
}
