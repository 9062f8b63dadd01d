// The function that a call calls, where that is known before the script runs.
import { walk } from '../tree/walk.js'
import { usesIn } from './uses.js'

/** @import { Chunk, FunctionDeclaration, Local, Node } from '../tree/nodes.js' */

/** The functions of each table, by number. @typedef {Map<Local, Map<number, FunctionDeclaration>>} FunctionTables */

/**
 * Tables of functions: every entry is a function, under a number, and assigned once.
 *
 * @param {Chunk} chunk
 * @returns {FunctionTables}
 */
export function functionTables(chunk) {
  /** @type {FunctionTables} */
  const tables = new Map()
  for (const [local, { init, reads, writes, fills, entries }] of usesIn(chunk)) {
    const isTable = init?.type === 'TableConstructorExpression' && init.fields.length === 0 && writes === 0
    if (isTable && reads + fills === entries.length) tables.set(local, new Map())
  }
  walk(chunk, (node) => {
    if (node.type !== 'AssignmentStatement') return
    for (const [i, target] of node.variables.entries()) {
      if (target.type === 'Identifier' || target.base.type !== 'Identifier' || !target.base.local) continue
      const { local } = target.base
      const table = tables.get(local)
      if (!table) continue
      const made = node.init[i]
      const key =
        target.type === 'IndexExpression' && target.index.type === 'NumericLiteral' ? target.index.value : undefined
      if (made?.type === 'FunctionDeclaration' && key !== undefined && !table.has(key)) table.set(key, made)
      else tables.delete(local)
    }
  })
  return tables
}

/** The function of a table's entry, where it is known. @param {FunctionTables} tables @param {Node} node */
export function functionIn(tables, node) {
  if (node.type !== 'IndexExpression' || node.index.type !== 'NumericLiteral') return undefined
  const local = node.base.type === 'Identifier' ? node.base.local : undefined
  return local && tables.get(local)?.get(node.index.value)
}

/**
 * The function that a call calls. Undefined where that is unknown.
 *
 * @param {Chunk} chunk
 * @returns {(call: Node) => FunctionDeclaration | undefined}
 */
export function calleesIn(chunk) {
  const tables = functionTables(chunk)
  const uses = usesIn(chunk)
  /** @type {Map<Local, FunctionDeclaration>} */
  const named = new Map()
  walk(chunk, (node) => {
    if (node.type !== 'FunctionDeclaration' || !node.identifier) return
    if (!uses.get(node.identifier.local)?.writes) named.set(node.identifier.local, node)
  })
  return (call) => {
    if (call.type !== 'CallExpression') return undefined
    const { base } = call
    return base.type === 'Identifier' && base.local ? named.get(base.local) : functionIn(tables, base)
  }
}
