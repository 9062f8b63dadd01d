// `npm test`: everything that must hold, from a fresh clone with nothing but Node and npm. Stops at the first failure.
// `npm test -- <filter>` runs only the tests whose file names contain the filter, on the source.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { install } from './lib/pnpm.js'
import { requireNode, root } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { npmRun, npmRunAtOnce, take } from './lib/steps.js'
import { ensure } from './lib/system-program.js'
import { programsOf } from './programs.js'

const preparations = [
  { name: 'Node version', action: () => requireNode() },
  {
    name: 'finding redis-server, nginx, PostgreSQL, curl, prometheus, caddy, haproxy and python3',
    action: () => ensure(programsOf('test', 'release')),
  },
  { name: 'installing dependencies', action: install },
]

const checks = [
  npmRunAtOnce([['check:generated'], ['check:lint'], ['build']]),
  npmRunAtOnce([
    ['check:types'],
    ['check:sizes'],
    ['check:structure'],
    ['check:patterns'],
    ['check:prose'],
    ['check:unused'],
    ['check:api'],
    ['check:packages'],
    ['check:bundles'],
  ]),
  npmRun('test:merge'),
]

await whenStarted(import.meta.url, async () => {
  // Reports of an earlier run must not be taken for this one's.
  rmSync(join(root, '.tmp/reports'), { recursive: true, force: true })

  const filters = process.argv.slice(2)
  await take([...preparations, ...(filters.length > 0 ? [npmRun('test:only', filters)] : checks)])
  console.log(filters.length > 0 ? '\nThese tests pass.' : '\nAll checks pass.')
})
