// Pass: dissolves `do … end` blocks.
import { rewrite, walk } from '../tree/walk.js'

/** @import { Chunk } from '../tree/nodes.js' */

/**
 * @param {Chunk} chunk
 * @param {boolean} all also those of the source, not only those that passes made
 */
export function flattenBlocks(chunk, all) {
  rewrite(chunk, { statement: (node) => (node.type === 'DoStatement' && (all || node.isOurs) ? node.body : node) })
  // Statements behind the end of a block are unreachable, and Lua rejects them.
  walk(chunk, (node) => {
    if (!('body' in node)) return
    const end = node.body.findIndex(({ type }) => type === 'ReturnStatement' || type === 'BreakStatement')
    if (end >= 0) node.body.length = end + 1
  })
}
