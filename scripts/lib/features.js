// The features of the core: the folders of `features/`, and what composes them.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeLinesOf } from './code-lines.js'
import { root } from './project.js'
import { ROOMS } from './rooms.js'

const PORT = join(root, 'packages/core/src/store/store.ts')
/** How many members `Store` has by name: what every store may have. */
const PORT_MEMBERS = 10
const FOLDER = join(root, 'packages/core/src/features')
/** What makes compositions of features, and is none. */
const NO_FEATURE = 'lean'

/**
 * @typedef {object} Feature a folder of `features/`
 * @property {string} name
 * @property {number} lines of code
 * @property {readonly string[]} imports the other features that it may import
 * @property {readonly string[]} lists the files beside the folders that compose it
 */

/** @returns {Feature[]} in the order of the table of rooms */
export function featuresOfCore() {
  const lines = codeLinesOf(FOLDER)
  const lists = readdirSync(FOLDER)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => /** @type {const} */ ([file, readFileSync(join(FOLDER, file), 'utf8')]))
  const rooms = Object.entries(ROOMS.core?.inner?.features?.rooms ?? {}).filter(([name]) => name !== NO_FEATURE)
  return rooms.map(([name, imports]) => ({
    name,
    lines: lines[name] ?? 0,
    imports: imports.filter((other) => other !== NO_FEATURE),
    lists: lists.flatMap(([file, text]) => (text.includes(`'./${name}/`) ? [file] : [])),
  }))
}

/**
 * What ARCHITECTURE.md says of features that is not so.
 *
 * @param {string} page
 * @param {readonly Feature[]} features
 * @returns {string[]}
 */
export function problemsOfFeatures(page, features) {
  return features.flatMap(({ name, imports, lists }) => {
    const row = new RegExp(`^\\| \`${name}\` \\| .* \\| (.*) \\|$`, 'm').exec(page)
    const expected = imports.length === 0 ? '–' : imports.join(', ')
    return [
      ...(existsSync(join(FOLDER, name)) ? [] : [`features/${name} is a room, and no folder`]),
      ...(lists.length > 0 ? [] : [`features/${name}: no list has it`]),
      ...(row?.[1] === expected ? [] : [`features/${name}: expected a row that ends with | ${expected} |`]),
    ]
  })
}

/**
 * The members of the port that are none of every store's. A feature's part has a symbol, so that the port does not grow with
 * features.
 *
 * @param {string} text of the file of the port
 * @returns {string[]}
 */
export function problemsOfPort(text = readFileSync(PORT, 'utf8')) {
  const body = /^export interface Store \{\n([\s\S]*?)^\}/m.exec(text)?.[1] ?? ''
  const members = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(<]/gm)].map(([, name]) => name)
  if (members.length === PORT_MEMBERS) return []
  return [
    `store/store.ts: Store has ${members.length} members by name, expected ${PORT_MEMBERS}: ${members.join(', ')}.`,
    '  What a feature needs of a store is a part of it, found by a symbol: readonly [BANS]?: StoreBans',
  ]
}
