// Projects of users, with our packages as they are published and others from the npm registry.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureRedis } from '../programs.js'
import { pnpm } from './pnpm.js'
import { freePort } from './ports.js'
import { root } from './project.js'
import { run } from './run.js'
import { startThrowawayRedis } from './throwaway-redis.js'

/** The programs that are run in them. */
const users = join(root, 'scripts/package-users')

/** @param {string} name of one of our packages, without the scope */
export const manifestOf = (name) => JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))

/** @param {string} into @param {Record<string, string>} dependencies */
export async function install(into, dependencies) {
  mkdirSync(into, { recursive: true })
  writeFileSync(join(into, 'package.json'), JSON.stringify({ private: true, dependencies }))
  const quiet = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel', 'error']
  await run('npm', ['install', '--prefix', into, '--prefer-offline', ...quiet], { cwd: into, quiet: true })
}

/**
 * Packs our packages as they are built, all at once, as loading pnpm takes longer than packing.
 *
 * @param {string} folder for the tarballs
 * @returns {Promise<Record<string, string>>} tarballs by the names of our packages, without the scope
 */
export async function pack(folder) {
  mkdirSync(folder, { recursive: true })
  await pnpm(['--recursive', '--filter', './packages/*', 'pack', '--out', join(folder, '%s.tgz')], { quiet: true })
  return Object.fromEntries(
    readdirSync(join(root, 'packages')).map((name) => [name, join(folder, `sluice-${name}.tgz`)]),
  )
}

/**
 * Builds and packs our packages.
 *
 * @param {string} folder for the tarballs
 * @returns {Promise<Record<string, string>>} addresses of files by the names of our packages
 */
export async function packAll(folder) {
  await pnpm(['exec', 'turbo', 'run', 'build', '--output-logs', 'errors-only'])
  const tarballs = Object.entries(await pack(folder))
  return Object.fromEntries(tarballs.map(([name, tarball]) => [manifestOf(name).name, `file:${tarball}`]))
}

/**
 * Copies programs of users into a project.
 *
 * @param {string} project
 * @param {string} program a file or folder of package-users/
 * @param {string} [as]
 */
export const place = (project, program, as = program) =>
  cpSync(join(users, program), join(project, as), { recursive: true })

/**
 * Packs and installs anew in a folder of `.tmp`, while a Redis server runs.
 *
 * @param {string} name of the folder
 * @param {(made: { folder: string, tarballs: Record<string, string>, env: Record<string, string> }) => Promise<void>} use
 *   with the addresses of our tarballs, to install, and what programs find the server by
 */
export async function withTarballs(name, use) {
  await ensureRedis()
  const folder = join(root, '.tmp', name)
  rmSync(folder, { recursive: true, force: true })
  const tarballs = await packAll(folder)
  const port = await freePort()
  const redis = await startThrowawayRedis(['--port', String(port)])
  try {
    await use({ folder, tarballs, env: { REDIS_URL: `redis://127.0.0.1:${port}`, NODE_OPTIONS: '' } })
  } finally {
    await redis.end()
  }
}

/**
 * Runs a program of package-users/ in a project.
 *
 * @param {string} project
 * @param {string[]} runtime with its arguments before the program
 * @param {string} program
 * @param {Record<string, string>} [env]
 * @returns {Promise<string>} what it printed
 */
export async function runIn(project, [runtime = '', ...args], program, env) {
  place(project, program)
  return (await run(runtime, [...args, program], { cwd: project, env, quiet: true })).trim()
}
