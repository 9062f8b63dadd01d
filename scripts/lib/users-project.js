// Projects of users, with our packages as they are published and others from the npm registry.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pnpm } from './pnpm.js'
import { root } from './project.js'
import { run } from './run.js'

/** The programs that are run in them. */
export const users = join(root, 'scripts/package-users')

/** @param {string} name of one of our packages, without the scope */
export const manifestOf = (name) => JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))

/** @param {string} into @param {Record<string, string>} dependencies */
export async function install(into, dependencies) {
  mkdirSync(into, { recursive: true })
  writeFileSync(join(into, 'package.json'), JSON.stringify({ private: true, dependencies }))
  const quiet = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel', 'error']
  await run('npm', ['install', '--prefix', into, '--prefer-offline', ...quiet], { cwd: into, quiet: true })
}

/** @param {string} folder for the tarballs @returns {Promise<Record<string, string>>} tarballs by the names of our packages */
export async function packAll(folder) {
  await pnpm(['exec', 'turbo', 'run', 'build', '--output-logs', 'errors-only'])
  mkdirSync(folder, { recursive: true })
  // All at once, as loading pnpm takes longer than packing.
  const out = join(folder, '%s.tgz')
  await pnpm(['--recursive', '--filter', './packages/*', 'pack', '--out', out], { quiet: true })
  return Object.fromEntries(
    readdirSync(join(root, 'packages')).map((name) => [
      manifestOf(name).name,
      `file:${join(folder, `sluice-${name}.tgz`)}`,
    ]),
  )
}
