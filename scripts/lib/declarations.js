import { readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * The declaration files that a program gets to see by way of these entries: what they import and re-export, and so on.
 *
 * @param {string} dist
 * @param {readonly string[]} entries by name: `http`
 * @returns {Set<string>} paths inside the folder, without those of the entries
 */
export function reachable(dist, entries) {
  const faces = entries.map((entry) => `${entry}.d.ts`)
  const found = new Set(faces)
  for (const file of found) {
    for (const specifier of specifiersIn(readFileSync(join(dist, file), 'utf8'))) {
      found.add(join(dirname(file), specifier.replace(/\.js$/, '.d.ts')))
    }
  }
  for (const face of faces) found.delete(face)
  return found
}

/**
 * Removes the declarations that no entry reaches, which users would install and never read.
 *
 * @param {string} dist
 * @param {readonly string[]} entries by name
 */
export function removeUnreachable(dist, entries) {
  const kept = reachable(dist, entries)
  const found = readdirSync(join(dist, 'types'), { recursive: true, withFileTypes: true })
  for (const entry of found) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.has(relative(dist, path))) rmSync(path)
  }
  const folders = found.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  for (const folder of folders.sort().reverse()) {
    if (readdirSync(folder).length === 0) rmdirSync(folder)
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
