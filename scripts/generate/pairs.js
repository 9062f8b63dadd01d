// Writes the tables of docs/features-together.md from test/deep/pairs/table.json. test/deep/pairs shows that the product does what they say.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/project.js'
import { withGenerated } from './place.js'

const FILE = 'docs/features-together.md'

/** @param {{ features: Record<string, string>, rejected: [string, string, string][] }} table */
function tables({ features, rejected }) {
  const names = Object.keys(features)
  const sections = names.flatMap((name) => {
    const pairs = rejected.filter(([one]) => one === name)
    const lines = pairs.map(([, other, message]) => `- ${linked(other)}: \`${message}\``)
    return lines.length > 0 ? [`${linked(name)} never goes with:\n\n${lines.join('\n')}\n`] : []
  })
  const lines = Array.from({ length: Math.ceil(names.length / 10) }, (_, i) => names.slice(10 * i, 10 * i + 10))
  return `
${sections.join('\n')}
These features work with each other, except for those pairs:

${lines.map((names) => `- ${names.map(linked).join(', ')}`).join('\n')}

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
