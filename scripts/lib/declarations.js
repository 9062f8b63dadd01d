import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * The declaration files that a program gets to see by way of these modules: what they import and re-export, and so on.
 *
 * @param {string} types the folder of declarations
 * @param {readonly string[]} modules without endings: `http/index`
 * @returns {Set<string>} paths inside the folder
 */
export function reachable(types, modules) {
  const found = new Set(modules.map((module) => `${module}.d.ts`))
  for (const file of found) {
    for (const specifier of specifiersIn(readFileSync(join(types, file), 'utf8'))) {
      found.add(join(dirname(file), specifier.replace(/\.js$/, '.d.ts')))
    }
  }
  return found
}

/**
 * Removes the declarations that no entry reaches, which users would install and never read.
 *
 * @param {string} types
 * @param {readonly string[]} modules
 */
export function removeUnreachable(types, modules) {
  const kept = reachable(types, modules)
  const entries = readdirSync(types, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.has(relative(types, path))) rmSync(path)
  }
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  for (const folder of folders.sort().reverse()) {
    if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder)
  }
}

/**
 * What a declaration file imports from its own package: `from './x.js'`, `import('./x.js')`, `import './x.js'`.
 *
 * @param {string} text
 */
function specifiersIn(text) {
  const found = text.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g)
  return [...found].map(([, specifier]) => /** @type {string} */ (specifier))
}
