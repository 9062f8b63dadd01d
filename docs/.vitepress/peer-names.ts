import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { slugify } from './slugify.js'
import { WORDS } from './words.js'

const DOCS = fileURLToPath(new URL('..', import.meta.url))

/** The first cells of tables. */
const CELLS = /^\|[^|]*\|/gm

/**
 * The names of other libraries' options in the first columns of the migration pages' tables, by section: `windowMs` leads to its row.
 * Without what is a name here, too, or a word that leads elsewhere, such as `whiteList`.
 */
export function peerNames(): Map<string, string> {
  const options = readFileSync(`${DOCS}options.md`, 'utf8')
  const ours = [...namesIn(options.match(CELLS)), ...namesIn(options.match(/^#.*/gm)), ...Object.values(WORDS)]
  const known = new Set(ours.join(' ').toLowerCase().split(' '))
  const bySection = new Map<string, string>()
  for (const file of readdirSync(DOCS).filter((name) => name.startsWith('migrating-from-'))) {
    for (const section of readFileSync(DOCS + file, 'utf8').split(/^(?=##? )/m)) {
      const [heading = ''] = section.split('\n')
      const names = namesIn(section.match(CELLS)).filter(
        (name) => /^[a-z\d]+[A-Z]/.test(name) && !known.has(name.toLowerCase()),
      )
      bySection.set(`/${file.replace('.md', '')}#${slugify(heading.replace(/^#+ /, ''))}`, names.join(' '))
    }
  }
  return bySection
}

/** The words in code, and in headings. */
function namesIn(texts: readonly string[] | null): string[] {
  return (texts ?? [])
    .flatMap((text) => text.match(/`[^`\n]+`|^#.*/g) ?? [])
    .flatMap((code) => code.match(/\w+/g) ?? [])
}
