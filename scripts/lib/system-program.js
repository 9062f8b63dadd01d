// Programs that the tests start themselves. Finds one, installs the system's package where that needs no confirmation, and
// otherwise prints the remedy.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { CommandFailed, run } from './run.js'

/**
 * @typedef {object} Wanted
 * @property {string} program
 * @property {string} what for people, with the oldest version that suffices
 * @property {Record<'apt-get' | 'apk' | 'dnf' | 'brew', string>} packages by the program that installs them
 * @property {string[] | (() => string[])} [folders] where it may be as well as on PATH
 * @property {() => string | undefined} [find] in place of looking on PATH
 * @property {() => Promise<void>} [install] in place of the system's package
 * @property {(path: string) => unknown} [check] rejects if the program that was found does not suffice
 * @property {() => Promise<boolean>} [isReplaced] whether the tests can do without, although it is missing
 */

/**
 * Resolves when the tests can have all of these programs. Installs missing ones where that needs no confirmation and
 * SLUICE_NO_INSTALL does not forbid it. Otherwise rejects with one message that names everything that is missing.
 *
 * @param {Wanted[]} wanted
 */
export async function ensure(wanted) {
  const absent = missing(wanted)
  if (mayInstall()) {
    for (const { install } of absent) await install?.()
    const packaged = absent.filter(({ install }) => !install)
    if (packaged.length > 0) await installPackages(packaged)
  }

  const lacking = []
  for (const each of missing(absent)) if (!(await each.isReplaced?.())) lacking.push(each)
  if (lacking.length > 0) throw new Error(adviceHere(lacking))

  for (const each of wanted) {
    const path = find(each)
    if (path !== undefined) await each.check?.(path)
  }
}

/** @param {Wanted[]} wanted */
function missing(wanted) {
  return wanted.filter((each) => find(each) === undefined)
}

/** Anything but 0 forbids it: a value that is misunderstood must not install. */
export function mayInstall(setting = process.env.SLUICE_NO_INSTALL) {
  return setting === undefined || setting === '' || setting === '0'
}

/** @param {Wanted} wanted */
export function find({ program, folders = [], find }) {
  if (find) return find()
  const others = typeof folders === 'function' ? folders() : folders
  return findProgram(program) ?? findProgram(program, others.join(delimiter))
}

/** @param {Wanted[]} wanted */
async function installPackages(wanted) {
  const plan = installPlan(wanted, {
    isRoot: process.getuid?.() === 0,
    maySudo: await succeeds('sudo', ['-n', 'true']),
    has: (name) => findProgram(name) !== undefined,
  })
  if (plan.length > 0) console.log(announcement(wanted, plan))
  for (const { command, args, optional } of plan) {
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
 * @param {Wanted[]} wanted
 * @param {Step[]} plan
 */
export function announcement(wanted, plan) {
  const names = wanted.map(({ program }) => program).join(', ')
  const packages = wanted.map((each) => each.packages['apt-get']).join(', ')
  const commands = plan.map(({ command, args }) => [command, ...args].join(' ')).join('; ')
  return `Missing: ${names}. Installing the system packages ${packages} (SLUICE_NO_INSTALL=1 prevents this): ${commands}`
}

/** @typedef {{ command: string, args: string[], optional: boolean }} Step */

/**
 * The commands that install packages without confirmation; none where that is not permitted.
 *
 * @param {Wanted[]} wanted
 * @param {{ isRoot: boolean, maySudo: boolean, has: (program: string) => boolean }} machine
 * @returns {Step[]}
 */
export function installPlan(wanted, { isRoot, maySudo, has }) {
  if (!has('apt-get') || !(isRoot || maySudo)) return []
  /** @param {string[]} args */
  const asRoot = (...args) => {
    const line = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-o', 'DPkg::Lock::Timeout=120', ...args]
    const [command = '', ...rest] = isRoot ? line : ['sudo', '-n', ...line]
    return { command, args: rest }
  }
  const packages = wanted.map((each) => each.packages['apt-get'])
  return [
    // One unreachable source among many fails the update, yet the package may be known already.
    { ...asRoot('update'), optional: true },
    { ...asRoot('install', '-y', '--no-install-recommends', ...packages), optional: false },
  ]
}

/**
 * Advice for a person on this machine, in one sentence for all missing programs.
 *
 * @param {Wanted[]} wanted
 * @param {{ platform: string, has: (program: string) => boolean }} machine
 * @returns {string}
 */
export function adviceFor(wanted, { platform, has }) {
  /** @param {keyof Wanted['packages']} installer */
  const packages = (installer) => wanted.map((each) => each.packages[installer]).join(' ')
  const commands = /** @type {const} */ ([
    ['apt-get', `sudo apt-get install ${packages('apt-get')}`],
    ['apk', `apk add ${packages('apk')}`],
    ['dnf', `sudo dnf install ${packages('dnf')}`],
    ['brew', `brew install ${packages('brew')}`],
  ])
  const fitting = commands.find(([installer]) => has(installer))?.[1]
  const list = wanted.map(({ what }) => what).join(', ')
  const remedy = fitting === undefined ? `install ${list} (${platform})` : `run: ${fitting}`
  const names = wanted.map(({ program }) => program).join(', ')
  const [program, are] = wanted.length === 1 ? ['program', 'it is'] : ['programs', 'they are']
  return `The tests need the ${program} ${names}, and ${are} not on PATH; ${remedy}`
}

/** @param {Wanted[]} wanted */
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
