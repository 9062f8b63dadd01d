// The project's pnpm. scripts/pnpm pins it with its hash, which npm verifies. It is installed at first use, into a folder that
// is named after the lock file, so that each version has its own folder.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { root } from './project.js'
import { programs, run } from './run.js'

/** @typedef {import('./run.js').RunOptions} RunOptions */

const pinned = join(root, 'scripts/pnpm')
const cache = join(root, '.tmp/pnpm')

const quietTools = {
  TURBO_TELEMETRY_DISABLED: '1',
  TURBO_NO_UPDATE_NOTIFIER: '1',
  DO_NOT_TRACK: '1',
}

/**
 * Runs the project's pnpm. Programs that pnpm starts find it on their PATH, which turbo needs.
 *
 * @param {string[]} args
 * @param {RunOptions} [options]
 */
export async function pnpm(args, { env, ...options } = {}) {
  const folder = await ensurePnpm()
  const PATH = [programs, join(folder, 'node_modules/.bin'), process.env.PATH].join(delimiter)
  const entry = join(folder, 'node_modules/pnpm/bin/pnpm.cjs')
  return run(process.execPath, [entry, ...args], { ...options, env: { ...quietTools, PATH, ...env } })
}

/**
 * Installs exactly the packages of the lock file. Takes a second or two when all of them are there.
 *
 * @param {RunOptions} [options]
 */
export function install(options = {}) {
  // CI=true: without a terminal pnpm must not stop to ask whether it may replace node_modules.
  return pnpm(['install', '--frozen-lockfile'], { ...options, env: { CI: 'true', ...options.env } })
}

/**
 * The folder with the pinned pnpm in its node_modules, installed if need be. Needs the network only when npm's own cache
 * does not have it.
 *
 * @param {{ from?: string, into?: string }} [folders] others than the project's, for tests
 * @returns {Promise<string>}
 */
export async function ensurePnpm({ from = pinned, into = cache } = {}) {
  const lock = readFileSync(join(from, 'package-lock.json'))
  const folder = join(into, createHash('sha256').update(lock).digest('hex').slice(0, 16))
  if (existsSync(folder)) return folder

  mkdirSync(into, { recursive: true })
  const unfinished = mkdtempSync(join(into, 'unfinished-'))
  try {
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) cpSync(join(from, file), join(unfinished, file))
    console.log('Installing the pnpm that scripts/pnpm pins')
    // --prefix: npm must not install into the project around it.
    await run('npm', ['ci', '--prefix', unfinished, '--prefer-offline', '--loglevel', 'error'], { cwd: unfinished })
    // Atomic, also when another process installs it now.
    renameSync(unfinished, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return folder
}
