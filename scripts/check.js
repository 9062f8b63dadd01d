// `npm run check`: the checks that fail most often, within a minute, with only Node and the packages installed.
import { requireNode } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { npmRun, npmRunAtOnce, take } from './lib/steps.js'

await whenStarted(import.meta.url, async () => {
  requireNode()
  const startedMs = Date.now()
  await take([
    npmRunAtOnce([
      ['check:generated', '--no-redis'],
      ['check:lint'],
      ['check:sizes'],
      ['check:structure'],
      ['check:patterns'],
      ['check:prose'],
      ['check:types'],
    ]),
    npmRun('test:quick'),
  ])
  console.log(
    `\nAll quick checks pass, in ${Math.round((Date.now() - startedMs) / 1000)} s. npm test and npm run test:release have the others.`,
  )
})
