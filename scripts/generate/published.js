// Writes what follows from etc/published.json. Each document with a command that installs a package
// says below it that npm does not have the package yet, and each manifest has the addresses of the repository.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/project.js'
import { linksOf, release } from '../lib/repository.js'

const NOTE = `<!-- generated: not published -->
**Not published yet:** npm does not have these packages. In a clone of the repository, \`npm run pack\` makes them, and
prints the commands that install them.
<!-- end of generated -->
`
const NOTES = /\n<!-- generated: not published -->\n[\s\S]*?<!-- end of generated -->\n/g

/** A command that needs a published package: installed by name, or run by npx. */
const COMMAND = /\b(?:npm install\b.*|npx )@sluice\//

/**
 * The document with the note after the block of its first such command, or without it once the packages are published.
 *
 * @param {string} text
 * @param {boolean} published
 */
export function withNote(text, published) {
  const bare = text.replace(NOTES, '')
  if (published || !COMMAND.test(bare)) return bare
  const lines = bare.split('\n')
  const command = lines.findIndex((line) => COMMAND.test(line))
  const isFenced = lines.slice(0, command).filter((line) => line.startsWith('```')).length % 2 === 1
  const end = lines.findIndex((line, i) => i > command && (isFenced ? line === '```' : line === ''))
  // Behind the closing mark and the other tabs of the block, or in place of the empty line.
  const at = isFenced ? endOfTabs(lines, end + 1) : end
  return [...lines.slice(0, at), '', ...NOTE.trimEnd().split('\n'), ...lines.slice(at)].join('\n')
}

/**
 * Behind the `<details>` that follow a block directly: a note before them would part the tabs.
 *
 * @param {readonly string[]} lines
 * @param {number} at
 * @returns {number}
 */
function endOfTabs(lines, at) {
  const next = lines.findIndex((line, i) => i >= at && line !== '')
  if (!lines[next]?.startsWith('<details>')) return at
  return endOfTabs(lines, lines.indexOf('</details>', next) + 1)
}

/**
 * The manifest of a package with the addresses behind its licence.
 *
 * @param {string} name without the scope
 * @param {string} text
 * @param {string} address
 */
export function withLinks(name, text, address) {
  const { homepage, bugs, repository, ...others } = JSON.parse(text)
  const linked = Object.entries(others).flatMap(([field, value]) =>
    field === 'license' ? [[field, value], ...Object.entries(linksOf(name, address))] : [[field, value]],
  )
  return `${JSON.stringify(Object.fromEntries(linked), null, 2)}\n`
}

/** @returns {string[]} the documents that users read, from the root */
const documents = () => [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
  ...packages().map((name) => `packages/${name}/README.md`),
]

const packages = () => readdirSync(join(root, 'packages'))

export function make() {
  const { published, repository } = release()
  const texts = (/** @type {string[]} */ files, /** @type {(text: string, file: string) => string} */ make) =>
    files.map((file) => [file, make(readFileSync(join(root, file), 'utf8'), file)])
  return Object.fromEntries([
    ...texts(documents(), (text) => withNote(text, published)),
    ...packages().flatMap((name) =>
      texts([`packages/${name}/package.json`], (text) => withLinks(name, text, repository)),
    ),
  ])
}
