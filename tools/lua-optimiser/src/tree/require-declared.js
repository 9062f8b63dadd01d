import { parseLua } from './parse.js'
import { walk } from './walk.js'

/** Globals of scripts in Redis, among the names that the project uses. */
const GLOBALS = new Set(
  'ARGV KEYS cjson error ipairs math pairs redis select string struct table tonumber tostring type unpack'.split(' '),
)

/** Names that the store replaces: `DECISION`, `PARAMS`, `P1`. */
const PLACEHOLDER = /^[A-Z]+\d?$/

/**
 * Redis refuses to read a name that is not declared, but only once that line runs.
 *
 * @param {string} script its name, for the error
 * @param {string} source
 * @throws where a name is neither declared before it is used nor Redis's
 */
export function requireDeclared(script, source) {
  walk(parseLua(source), (node) => {
    if (node.type !== 'Identifier' || node.local || GLOBALS.has(node.name) || PLACEHOLDER.test(node.name)) return
    throw new Error(`${script}: ${node.name} is not declared where it is used`)
  })
}
