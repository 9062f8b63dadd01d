// `npm test`: everything that must hold, from a fresh clone with nothing but Node and npm. Stops at the first failure.
// `npm test -- <filter>` runs only the tests whose file names contain the filter, on the source.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensurePrograms } from './ensure-programs.js'
import { install } from './lib/pnpm.js'
import { requireNode, root } from './lib/project.js'
import { CommandFailed, run, whenStarted } from './lib/run.js'

/**
 * @param {string} script a script of the root package.json
 * @param {string[]} [args]
 * @returns {{ name: string, action: () => unknown }}
 */
const npmRun = (script, args = []) => ({
  name: `npm run ${script}`,
  action: () => run('npm', ['run', '--silent', script, ...(args.length > 0 ? ['--', ...args] : [])]),
})

const preparations = [
  { name: 'Node version', action: () => requireNode() },
  { name: 'finding redis-server, nginx and curl', action: ensurePrograms },
  { name: 'installing dependencies', action: install },
]

const checks = [
  npmRun('check:generated'),
  npmRun('check:lint'),
  npmRun('check:types'),
  npmRun('check:unused'),
  npmRun('build'),
  npmRun('test:source'),
  npmRun('test:built'),
  npmRun('check:packages'),
]

await whenStarted(import.meta.url, async () => {
  // Reports of an earlier run must not be taken for this one's.
  rmSync(join(root, '.tmp/reports'), { recursive: true, force: true })

  const filters = process.argv.slice(2)
  const steps = [...preparations, ...(filters.length > 0 ? [npmRun('test:source', filters)] : checks)]
  for (const { name, action } of steps) {
    const startedMs = Date.now()
    console.log(`\n── ${name}`)
    try {
      await action()
    } catch (error) {
      throw failure(name, error)
    }
    console.log(`── ${name}: ok (${((Date.now() - startedMs) / 1000).toFixed(1)} s)`)
  }
  console.log(filters.length > 0 ? '\nThese tests pass.' : '\nAll checks pass.')
})

/**
 * @param {string} name
 * @param {unknown} error
 */
function failure(name, error) {
  const reason = error instanceof Error ? error.message : String(error)
  return new CommandFailed(`\nCheck failed: ${name}\n${reason}`, error instanceof CommandFailed ? error.exitCode : 1)
}
