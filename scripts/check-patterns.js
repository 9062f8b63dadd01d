// `npm run check:patterns`: each regular expression of packages/*/src takes linear time at worst, by recheck. Patterns that a
// program makes of texts are not checked.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { isRegularExpressionLiteral } from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

// In this process: its other backends are programs of their own, which are not installed.
process.env.RECHECK_SYNC_BACKEND = 'pure'
const { checkSync } = await import('recheck')

/** @typedef {{ file: string, text: string }} Pattern */

/** A match that takes longer is more than linear. A busy machine needs seconds for a linear one. */
const ATTACK_MS = 30_000

/** Patterns that have passed. A pattern takes up to a second. */
const PASSED = join(root, '.tmp/linear-patterns.json')

/**
 * The regular expressions of files, in their order.
 *
 * @param {readonly string[]} files
 * @returns {Pattern[]}
 */
export function patternsIn(files) {
  const api = new API()
  try {
    const snapshot = api.updateSnapshot({ openFiles: [...files] })
    return files.flatMap((file) => {
      const source = snapshot.getDefaultProjectForFile(file)?.program.getSourceFile(file)
      if (!source) throw new Error(`${relative(root, file)}: TypeScript does not read it`)
      /** @type {Pattern[]} */
      const patterns = []
      /** @param {import('typescript/unstable/ast').Node} node */
      const visit = (node) => {
        if (isRegularExpressionLiteral(node)) patterns.push({ file: relative(root, file), text: node.text })
        node.forEachChild(visit)
      }
      visit(source)
      return patterns
    })
  } finally {
    api.close()
  }
}

/**
 * @param {string} text a regular expression as it is written
 * @returns {string | undefined} why it may take more than linear time
 */
function problemFound(text) {
  const end = text.lastIndexOf('/')
  const result = checkSync(text.slice(1, end), text.slice(end + 1), { timeout: null, attackTimeout: ATTACK_MS })
  if (result.status === 'safe') return undefined
  if (result.status === 'unknown') return 'recheck cannot check it'
  return `${result.complexity.summary} time for ${result.attack.pattern}`
}

/**
 * A busy machine may make recheck take a slow match for a quadratic one, once. A true problem is found each time.
 *
 * @param {string} text a regular expression as it is written
 * @returns {string | undefined} why it may take more than linear time
 */
export function problemOfPattern(text) {
  return problemFound(text) && problemFound(text) && problemFound(text)
}

/** @param {string} folder */
const programsIn = (folder) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?<!\.generated)\.(ts|js)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))

/** @returns {Set<string>} */
function passedBefore() {
  try {
    return new Set(JSON.parse(readFileSync(PASSED, 'utf8')))
  } catch {
    // None have been checked.
    return new Set()
  }
}

await whenStarted(import.meta.url, () => {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/src`)
  const patterns = patternsIn(packages.flatMap(programsIn).sort())
  const passed = passedBefore()
  const problems = patterns.flatMap(({ file, text }) => {
    const problem = passed.has(text) ? undefined : problemOfPattern(text)
    if (problem === undefined) passed.add(text)
    return problem === undefined ? [] : [`${file}: ${text}: ${problem}`]
  })
  mkdirSync(dirname(PASSED), { recursive: true })
  writeFileSync(PASSED, JSON.stringify([...passed]))
  if (problems.length > 0) throw new Error(problems.join('\n'))
  console.log(`${patterns.length} regular expressions take linear time`)
})
