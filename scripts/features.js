// `npm run features`: prints the features of the core, the lists that compose them, and the pairs of features that are rejected.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { featuresOfCore } from './lib/features.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

await whenStarted(import.meta.url, () => {
  for (const { name, lines, imports, lists } of featuresOfCore()) {
    const others = imports.length === 0 ? '' : `, imports ${imports.join(', ')}`
    console.log(`${name}: ${lines} lines${others}; in ${lists.join(', ')}`)
  }
  const { features, rejected } = JSON.parse(readFileSync(join(root, 'test/deep/pairs/table.json'), 'utf8'))
  const count = Object.keys(features).length
  console.log(`\nOf ${(count * (count - 1)) / 2} pairs of what users see, ${rejected.length} are rejected:`)
  for (const [one, other, message] of rejected) console.log(`${one}, ${other}: ${message}`)
})
