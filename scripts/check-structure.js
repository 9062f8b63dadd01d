// `npm run check:structure`: pages for contributors name files and code that exist, ARCHITECTURE.md has all features, and the
// port of stores has none.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeLinesOf } from './lib/code-lines.js'
import { featuresOfCore, problemsOfFeatures, problemsOfPort } from './lib/features.js'
import { missingNames, sourcesOfProject } from './lib/named-code.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const PAGES = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'lua/README.md']

await whenStarted(import.meta.url, () => {
  const sources = sourcesOfProject()
  const problems = PAGES.flatMap((page) =>
    missingNames(readFileSync(join(root, page), 'utf8'), sources).map((problem) => `${page}: ${problem}`),
  )
  problems.push(...problemsOfFeatures(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'), featuresOfCore()))
  problems.push(...problemsOfPort())
  if (problems.length > 0) throw new Error(problems.join('\n'))
  console.log(`The files and names on ${PAGES.length} pages for contributors exist`)
  const { features = 0, redis = 0, ...core } = codeLinesOf(join(root, 'packages/core/src'))
  const rest = Object.values(core).reduce((sum, lines) => sum + lines, 0)
  console.log(`Code lines of packages/core: ${features} in features, ${redis} in redis, ${rest} in all else`)
})
