// Reads Lua into a tree.
import luaparse from 'luaparse'
import { resolveNames } from './resolve-names.js'
import { below, isSupported, rewrite, walk } from './walk.js'

/** @import { Chunk, Node } from './nodes.js' */

/** Marks are read as calls of this name, as the parser would drop comments. */
const MARK = '__mark'

/**
 * The tree of a script. Lines `--@…` in it become statements that are only marks.
 *
 * @param {string} source
 * @returns {Chunk}
 * @throws where a line is no Lua 5.1, or uses syntax that the passes do not know
 */
export function parseLua(source) {
  const marked = source.replace(/^--@(.*)$/gm, (_, mark) => `${MARK}('${mark}')`)
  const parsed = luaparse.parse(marked, { luaVersion: '5.1', comments: false, ranges: true })
  const chunk = /** @type {Chunk} */ (/** @type {unknown} */ (parsed))
  requireSupported(chunk, marked)
  walk(chunk, (node) => {
    if (node.type === 'CallExpression') node.inParens = isInBrackets(marked, rangeOf(node))
  })
  resolveNames(chunk)
  rewrite(chunk, {
    statement: (node) => {
      const call = node.type === 'CallStatement' ? node.expression : undefined
      const [mark] = call?.base.type === 'Identifier' && call.base.name === MARK ? call.arguments : []
      return mark?.type === 'StringLiteral' ? { type: 'MarkStatement', mark: mark.raw.slice(1, -1) } : node
    },
  })
  return chunk
}

/** The position of a node in the text. @param {Node} node */
const rangeOf = (node) => /** @type {{ range: [number, number] }} */ (/** @type {unknown} */ (node)).range

/** @param {Node} node @param {string} source */
function requireSupported(node, source) {
  const isOpenFunction = node.type === 'FunctionDeclaration' && node.identifier && !node.isLocal
  if (!isSupported(node.type) || isOpenFunction) {
    const line = source.slice(0, rangeOf(node)[0]).split('\n').length
    const what = isOpenFunction ? 'a function that is neither local nor in a table' : node.type
    throw new Error(`lua: line ${line}: ${what} is not supported`)
  }
  for (const child of below(node)) requireSupported(child, source)
}

/**
 * Whether a call is in brackets of its own, which leave only the first of its results. The parser does not report it.
 *
 * @param {string} source
 * @param {[number, number]} range
 */
function isInBrackets(source, [start, end]) {
  const before = /(\w*|[)\]'"])\s*\($/.exec(source.slice(Math.max(0, start - 40), start).trimEnd())
  const isCall = before?.[1] && !/^(and|elseif|if|in|not|or|return|until|while)$/.test(before[1])
  return before !== null && !isCall && source.slice(end).trimStart().startsWith(')')
}
