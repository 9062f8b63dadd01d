// The Lua source of scripts in a folder.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** @import { ReadSource } from './bundle.js' */

/**
 * The Lua source of scripts: its files, and the names of the kinds of cells, each a file in `cells/`.
 *
 * @typedef {{ read: ReadSource, cells: readonly string[] }} Source
 */

/** @param {string} folder @returns {Source} */
export function sourceIn(folder) {
  const files = readdirSync(join(folder, 'cells')).filter((file) => file.endsWith('.lua'))
  return {
    read(name) {
      const file = join(folder, `${name}.lua`)
      return existsSync(file) ? readFileSync(file, 'utf8') : undefined
    },
    cells: files.map((file) => file.slice(0, -'.lua'.length)).sort(),
  }
}
