// `npm test`: what every change needs, from a fresh clone with nothing but Node and npm. `npm run test:release`: what a release needs
// besides. Both stop at the first failure. `npm test -- <filter>` runs only the tests whose file names contain the filter, on the source.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { install } from './lib/pnpm.js'
import { requireNode, root } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { npmRun, npmRunAtOnce, take } from './lib/steps.js'
import { ensure } from './lib/system-program.js'
import { programsOf } from './programs.js'

/** @typedef {import('./lib/steps.js').Step} Step */

/** @type {Record<'test' | 'release', { report: string, checks: Step[] }>} */
const COMMANDS = {
  test: {
    report: 'change',
    checks: [
      npmRunAtOnce([['check:generated'], ['check:lint'], ['build']]),
      npmRunAtOnce([['check:types'], ['check:sizes'], ['check:structure'], ['check:prose'], ['check:unused']]),
      npmRun('test:change'),
    ],
  },
  release: {
    report: 'release',
    checks: [
      npmRun('build'),
      npmRunAtOnce([['check:api'], ['check:packages'], ['check:bundles'], ['check:patterns']]),
      npmRun('test:of-release'),
    ],
  },
}

/** @param {('test' | 'release')[]} commands @returns {Step[]} */
const preparations = (...commands) => {
  const programs = programsOf(...commands)
  return [
    { name: 'Node version', action: () => requireNode() },
    {
      name: `finding ${programs.map(({ program }) => program).join(', ')}`,
      action: () => ensure(programs),
    },
    { name: 'installing dependencies', action: install },
  ]
}

await whenStarted(import.meta.url, async () => {
  const [, , ...words] = process.argv
  const command = words[0] === '--release' ? 'release' : 'test'
  const filters = words.filter((word) => word !== '--release')
  if (filters.length > 0) {
    await take([...preparations('test', 'release'), npmRun('test:only', filters)])
    console.log('\nThese tests pass.')
    return
  }
  const { report, checks } = COMMANDS[command]
  // The report of an earlier run must not be taken for this one's.
  rmSync(join(root, `.tmp/reports/${report}.json`), { force: true })
  await take([...preparations(command), ...checks])
  console.log(
    command === 'test'
      ? '\nAll checks of a change pass. npm run test:release has the others.'
      : '\nAll checks of a release pass.',
  )
})
