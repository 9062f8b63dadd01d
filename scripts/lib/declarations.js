import { readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * The declaration files that these entries reach by imports and re-exports.
 *
 * @param {string} dist
 * @param {readonly string[]} entries by name: `http`
 * @returns {Set<string>} paths inside the folder, without those of the entries
 */
export function reachable(dist, entries) {
  const faces = entries.map((entry) => `${entry}.d.ts`)
  const found = follow(dist, faces, (specifier) => specifier.replace(/\.js$/, '.d.ts'))
  for (const face of faces) found.delete(face)
  return found
}

/**
 * The files that these import, by way of others too, and these themselves.
 *
 * @param {string} dist
 * @param {readonly string[]} files
 * @param {(specifier: string) => string} [fileOf]
 * @returns {Set<string>} paths inside the folder
 */
export function follow(dist, files, fileOf = (specifier) => specifier) {
  const found = new Set(files)
  for (const file of found) {
    for (const specifier of specifiersIn(readFileSync(join(dist, file), 'utf8'))) {
      found.add(join(dirname(file), fileOf(specifier)))
    }
  }
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
 * The imports of a file from its own package: `from './x.js'`, `import('./x.js')`, `import './x.js'`.
 *
 * @param {string} text
 */
function specifiersIn(text) {
  const found = text.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g)
  return [...found].map(([, specifier]) => /** @type {string} */ (specifier))
}

/**
 * The interfaces that modules of a package add to those of others, such as `respond` to a limit's: API Extractor leaves them out.
 *
 * @param {string} types the folder of declarations
 * @returns {string[]} as declarations, `interface Name<Subject> { … }`
 */
export function augmentationsIn(types) {
  const files = readdirSync(types, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.d.ts'))
  return files.sort().flatMap((file) => {
    const modules = readFileSync(join(types, file), 'utf8').matchAll(/^declare module '\.[^']*' \{\n([\s\S]*?)^\}/gm)
    return [...modules].flatMap(([, body = '']) =>
      [...body.matchAll(/^ {4}(interface [\s\S]*?)^ {4}\}/gm)].map(([all]) => all),
    )
  })
}

/**
 * Adds interfaces to those of the same name: TypeScript merges them, if all are exported or none is.
 *
 * @param {string} rolled
 * @param {readonly string[]} augmentations
 */
export function withAugmentations(rolled, augmentations) {
  const added = augmentations.map((text) => {
    const name = /interface (\w+)/.exec(text)?.[1]
    const first = new RegExp(`^(export )?declare interface ${name}\\b`, 'm').exec(rolled)
    if (!first) throw new Error(`there is no interface ${name} to add to`)
    return `${first[1] ?? ''}declare ${text.replace(/^ {4}/gm, '')}\n`
  })
  return rolled + added.join('')
}
