// What an editor shows of a package's options, by the language service of TypeScript.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript5'

/**
 * @typedef {object} Shown
 * @property {string} name
 * @property {string} text its documentation
 * @property {string[]} tags such as `default`
 */

/**
 * The properties that completion offers at `/*here*\/` in a program.
 *
 * @param {string} folder of a project
 * @param {string} file the program, within the folder
 * @returns {Shown[]}
 */
export function completionsIn(folder, file) {
  const path = join(folder, file)
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, strict: true, types: ['node'] }
  const service = ts.createLanguageService({
    getScriptFileNames: () => [path],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name) => {
      const text = ts.sys.readFile(name)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => folder,
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    realpath: ts.sys.realpath,
  })
  const at = readFileSync(path, 'utf8').indexOf('/*here*/')
  const { entries = [] } = service.getCompletionsAtPosition(path, at, {}) ?? {}
  return entries.map(({ name }) => {
    const details = service.getCompletionEntryDetails(path, at, name, {}, undefined, {}, undefined)
    const text = ts.displayPartsToString(details?.documentation)
    return { name, text, tags: (details?.tags ?? []).map((tag) => tag.name) }
  })
}

/** Options whose whole documentation is short, as it is shown with each pointing at them. */
const SHORT = ['limit', 'window', 'key', 'store']
const LONGEST = 160
/** Characters of the first paragraph of every other. */
const ONE_LINE = 120

/**
 * @param {readonly Shown[]} shown
 * @param {readonly string[]} options that there are
 * @returns {string[]}
 */
export function problemsOfCompletions(shown, options) {
  const names = new Set(shown.map(({ name }) => name))
  return [
    ...options.filter((name) => !names.has(name)).map((name) => `${name} is not offered`),
    ...shown.flatMap(({ name, text, tags }) => {
      // Names of other libraries are struck through.
      if (!options.includes(name)) return tags.includes('deprecated') ? [] : [`${name} is offered, and no option`]
      const [first = ''] = text.split(/\r?\n\r?\n/)
      return [
        ...(tags.includes('default') ? [] : [`${name} has no default`]),
        ...(tags.includes('deprecated') || tags.includes('internal') ? [`${name} is offered`] : []),
        ...(first === '' || first.length > ONE_LINE
          ? [`${name}: its first paragraph has ${first.length} characters`]
          : []),
        ...(SHORT.includes(name) && text.length > LONGEST ? [`${name} has ${text.length} characters`] : []),
      ]
    }),
  ]
}
