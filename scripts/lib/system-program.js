// Programs that the tests start themselves: finds one, installs the system's package where that can be done without
// asking, and else says what to do.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { CommandFailed, run } from './run.js'

/**
 * @typedef {object} Wanted
 * @property {string} program
 * @property {string} what in words, with the oldest version that will do
 * @property {Record<'apt-get' | 'apk' | 'dnf' | 'brew', string>} packages by the program that installs them
 * @property {string[]} [folders] where it may be as well as on PATH
 */

/**
 * The program's full path, after installing it if need be; undefined where that is not ours to do.
 *
 * @param {Wanted} wanted
 * @returns {Promise<string | undefined>}
 */
export async function obtain(wanted) {
  if (find(wanted) === undefined) await installPackage(wanted)
  return find(wanted)
}

/** @param {Wanted} wanted */
export function find({ program, folders = [] }) {
  return findProgram(program) ?? findProgram(program, folders.join(delimiter))
}

/** @param {Wanted} wanted */
async function installPackage(wanted) {
  const plan = installPlan(wanted, {
    isRoot: process.getuid?.() === 0,
    maySudo: await succeeds('sudo', ['-n', 'true']),
    has: (name) => findProgram(name) !== undefined,
  })
  for (const { command, args, optional } of plan) {
    console.log(`No ${wanted.program} yet: ${command} ${args.join(' ')}`)
    try {
      await run(command, args)
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error
      console.warn(error.message)
      if (!optional) return
    }
  }
}

/**
 * The commands that install a package without asking anyone; none where that is not ours to do.
 *
 * @param {Wanted} wanted
 * @param {{ isRoot: boolean, maySudo: boolean, has: (program: string) => boolean }} machine
 * @returns {{ command: string, args: string[], optional: boolean }[]}
 */
export function installPlan({ packages }, { isRoot, maySudo, has }) {
  if (!has('apt-get') || !(isRoot || maySudo)) return []
  /** @param {string[]} args */
  const asRoot = (...args) => {
    const line = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-o', 'DPkg::Lock::Timeout=120', ...args]
    const [command = '', ...rest] = isRoot ? line : ['sudo', '-n', ...line]
    return { command, args: rest }
  }
  return [
    // One unreachable source among many fails the update, yet the package may be known already.
    { ...asRoot('update'), optional: true },
    { ...asRoot('install', '-y', '--no-install-recommends', packages['apt-get']), optional: false },
  ]
}

/**
 * What a person should do on this machine, in one sentence.
 *
 * @param {Wanted} wanted
 * @param {{ platform: string, has: (program: string) => boolean }} machine
 * @returns {string}
 */
export function adviceFor({ program, what, packages }, { platform, has }) {
  const commands = /** @type {const} */ ([
    ['apt-get', `sudo apt-get install ${packages['apt-get']}`],
    ['apk', `apk add ${packages.apk}`],
    ['dnf', `sudo dnf install ${packages.dnf}`],
    ['brew', `brew install ${packages.brew}`],
  ])
  const fitting = commands.find(([installer]) => has(installer))?.[1]
  const remedy = fitting === undefined ? `install ${what} (${platform})` : `run: ${fitting}`
  return `The tests need the program ${program}, and it is not on PATH; ${remedy}`
}

/** @param {Wanted} wanted */
export function adviceHere(wanted) {
  return adviceFor(wanted, { platform: process.platform, has: (name) => findProgram(name) !== undefined })
}

/**
 * @param {string} name
 * @param {string} [path] folders to search, as in PATH
 * @returns {string | undefined} the program's full path
 */
export function findProgram(name, path = process.env.PATH ?? '') {
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue
    const candidate = join(folder, name)
    try {
      accessSync(candidate, constants.X_OK)
      return candidate
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}

/**
 * @param {string} command
 * @param {string[]} args
 */
async function succeeds(command, args) {
  try {
    await run(command, args, { quiet: true })
    return true
  } catch {
    return false
  }
}
