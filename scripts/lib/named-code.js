// Names of code on pages for contributors: each file that a page names exists, and each name beside it does.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './project.js'

/** Where paths of pages begin. */
const BASES = ['', 'packages/core/src/', 'lua/']
const SOURCES = ['packages', 'lua', 'scripts', 'tools', 'test', 'bench', 'docs', 'examples']
const PATH = /^[\w./-]+\.(?:ts|js|lua)$/
const NAME = /^#?[A-Za-z_]\w*$/
/** `path`: `name`, `path` (`name`, `path` | `name` in a table, and `name` in `path`. */
const PATHS_NAME = '`([\\w./-]+\\.(?:ts|js|lua))`'
const OF_CODE = '`(#?[A-Za-z_]\\w*)`'
const BESIDE = new RegExp(
  `${PATHS_NAME}(?:: ?| \\()${OF_CODE}|(?<=\\| )${PATHS_NAME} \\| ${OF_CODE}|${OF_CODE} in\\s+${PATHS_NAME}`,
  'g',
)

/** @returns {Map<string, string>} the text of each file of the project with code, by its path */
export function sourcesOfProject() {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:ts|tsx|js|lua)$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .filter((file) => !/(?:^|\/)(?:node_modules|dist|\.\w+)\//.test(file)),
  )
  return new Map([...files, 'biome.json'].map((file) => [file, readFileSync(join(root, file), 'utf8')]))
}

/**
 * What a page names and the project does not have.
 *
 * @param {string} page its text
 * @param {ReadonlyMap<string, string>} sources
 * @returns {string[]}
 */
export function missingNames(page, sources) {
  const problems = new Set()
  // Tests and benchmarks have names of their own, and say nothing of what they are about.
  const product = [...sources].flatMap(([file, text]) => (/^(?:test|bench)\//.test(file) ? [] : [text]))
  // Lines of drawings name code without a mark.
  const marked = page.replace(/^```\w*\n([\s\S]*?)^```$/gm, (_, drawing) => drawing.replace(/(?<=\s)#\w+/g, '`$&`'))
  const blocks = marked.split(/\n(?=\||- |\d+\. |\n)/)
  for (const block of blocks) {
    const spans = [...block.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span)
    const paths = spans.filter((span) => PATH.test(span))
    for (const path of paths) if (filesOf(path, sources).length === 0) problems.add(`\`${path}\`: no such file`)
    const names = spans.filter((span) => NAME.test(span) && (paths.length > 0 || span.startsWith('#')))
    for (const name of names) if (!isSomewhere(name, product)) problems.add(`\`${name}\`: no such name`)
    for (const [, ...pair] of block.matchAll(BESIDE)) {
      const [one = '', other = ''] = pair.filter((text) => text !== undefined)
      const [path, name] = PATH.test(one) ? [one, other] : [other, one]
      const texts = filesOf(path, sources).map((file) => sources.get(file) ?? '')
      if (texts.length > 0 && !isSomewhere(name, texts)) problems.add(`\`${path}\`: has no \`${name}\``)
    }
  }
  return [...problems]
}

/** @param {string} path @param {ReadonlyMap<string, string>} sources */
function filesOf(path, sources) {
  const exact = BASES.map((base) => base + path).filter((file) => sources.has(file))
  return exact.length > 0 ? exact : [...sources.keys()].filter((file) => file.endsWith(`/${path}`))
}

/** @param {string} name @param {readonly string[]} texts */
function isSomewhere(name, texts) {
  const word = new RegExp(`(?<![\\w#])${name}(?!\\w)`)
  return texts.some((text) => word.test(text))
}
