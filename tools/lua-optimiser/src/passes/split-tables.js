// Pass: turns entries of tables into variables, where they are only accessed by constant numbers.
import { functionTables } from '../facts/function-tables.js'
import { usesIn } from '../facts/uses.js'
import { declaration, identifier } from '../tree/make.js'
import { rewrite } from '../tree/walk.js'

/** @import { Chunk, Expression, IndexExpression, Local } from '../tree/nodes.js' */

/** @param {Chunk} chunk */
export function splitTables(chunk) {
  const tables = functionTables(chunk)
  /** The variables of each table, by number. @type {Map<Local, Map<number, Local>>} */
  const split = new Map()
  for (const [local, { init, reads, writes, fills, entries }] of usesIn(chunk)) {
    if (init?.type !== 'TableConstructorExpression' || init.fields.length > 0 || writes > 0) continue
    if (tables.get(local)?.size) continue
    const indexes = entries.flatMap((entry) => numberOf(entry) ?? [])
    if (reads + fills !== entries.length || indexes.length !== entries.length) continue
    const keys = [...new Set(indexes)].sort((a, b) => a - b)
    split.set(local, new Map(keys.map((key) => [key, { name: keys.length > 1 ? `${local.name}${key}` : local.name }])))
  }
  rewrite(chunk, {
    expression: (node) => {
      const entry = entryOf(node, split)
      return entry ? identifier(entry) : node
    },
    statement: (node) => {
      if (node.type !== 'LocalStatement' || !node.variables.some(({ local }) => split.has(local))) return node
      return node.variables.flatMap(({ local }, i) => {
        const parts = split.get(local)
        if (!parts) return declaration([local], node.init.slice(i, i + 1))
        return parts.size > 0 ? declaration([...parts.values()], []) : []
      })
    },
  })
}

/** @param {IndexExpression} entry */
const numberOf = ({ index }) => (index.type === 'NumericLiteral' ? index.value : undefined)

/** @param {Expression} node @param {ReadonlyMap<Local, ReadonlyMap<number, Local>>} split */
function entryOf(node, split) {
  if (node.type !== 'IndexExpression' || node.base.type !== 'Identifier' || !node.base.local) return undefined
  return split.get(node.base.local)?.get(numberOf(node) ?? Number.NaN)
}
