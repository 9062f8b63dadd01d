// Writes the tables of docs/features-together.md from test/deep/pairs/table.json. test/deep/pairs shows that the product does what they say.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/project.js'
import { withGenerated } from './place.js'

const FILE = 'docs/features-together.md'

/** @param {{ features: Record<string, string>, rejected: [string, string, string][] }} table */
function tables({ features, rejected }) {
  const rows = rejected.map(([one, other, message]) => `| ${linked(one)} | ${linked(other)} | \`${message}\` |`)
  return `
| feature | never with | message |
|---|---|---|
${rows.join('\n')}

These features work with each other, except for those pairs:

${Object.keys(features)
  .map((name) => `- ${linked(name)}`)
  .join('\n')}

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
