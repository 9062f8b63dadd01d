// `npm run build:pairs`: writes the tables of docs/features-together.md from test/deep/pairs/table.json. With --check it only looks
// whether they are up to date. test/deep/pairs shows that the product does what they say.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const FILE = 'docs/features-together.md'
const PLACE = /(?<=<!-- generated: pairs -->\n)[\s\S]*?(?=<!-- end of generated -->)/

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

await whenStarted(import.meta.url, () => {
  const text = readFileSync(join(root, FILE), 'utf8')
  const made = text.replace(PLACE, () =>
    tables(JSON.parse(readFileSync(join(root, 'test/deep/pairs/table.json'), 'utf8'))),
  )
  if (!process.argv.includes('--check')) writeFileSync(join(root, FILE), made)
  else if (made !== text) throw new Error(`the tables of ${FILE} are stale; run: npm run build:pairs`)
})
