// Writes the tables of docs/features-together.md from test/deep/pairs/table.json. test/deep/pairs shows that the product does what they say.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/project.js'
import { withGenerated } from './place.js'

const FILE = 'docs/features-together.md'

/** @param {{ features: Record<string, string>, rejected: [string, string, string][] }} table */
function tables({ features, rejected }) {
  const sections = Object.keys(features).flatMap((name) => {
    const rows = rejected.filter(([one]) => one === name)
    if (rows.length === 0) return []
    return `${linked(name)} never goes with:

${rows.map(([, other, message]) => `- ${linked(other)}: \`${message}\``).join('\n')}
`
  })
  return `
${sections.join('\n')}
These features work with each other, except for those pairs: ${Object.keys(features).map(linked).join(', ')}.

`

  /** @param {string} name */
  function linked(name) {
    return `[${name}](${features[name]})`
  }
}

export const make = () => ({
  [FILE]: withGenerated(
    FILE,
    'pairs',
    tables(JSON.parse(readFileSync(join(root, 'test/deep/pairs/table.json'), 'utf8'))),
  ),
})
