// The tests start Redis servers of their own (single, cluster, sentinel), so what they need is a redis-server program.
// Looks for one, installs the system's package where that can be done without asking, and else says what to do.
import { accessSync, constants } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { CommandFailed, run, whenStarted } from './lib/run.js'

/** The oldest Redis that the scripts are written for. */
const oldestMajor = 7

/**
 * Resolves when the tests can have their Redis; rejects with a message that names the remedy.
 */
export async function ensureRedis() {
  if (findProgram('redis-server') === undefined) await installRedis()
  const program = findProgram('redis-server')
  if (program !== undefined) {
    const version = await run(program, ['--version'], { quiet: true })
    const problem = versionProblem(version)
    if (problem !== undefined) throw new Error(`${program}: ${problem}`)
    console.log(`${program}: ${version.trim()}`)
    return
  }

  const remedy = adviceFor({ platform: process.platform, has: (name) => findProgram(name) !== undefined })
  const url = process.env.REDIS_URL
  if (url === undefined || !(await answers(url))) throw new Error(remedy)
  // One server is something; what needs a cluster or a failover will fail by itself, loudly.
  console.warn(`Only the server of REDIS_URL is there; tests that start servers of their own will fail. ${remedy}`)
}

async function installRedis() {
  const plan = installPlan({
    isRoot: process.getuid?.() === 0,
    maySudo: await succeeds('sudo', ['-n', 'true']),
    has: (name) => findProgram(name) !== undefined,
  })
  for (const { command, args, optional } of plan) {
    console.log(`No redis-server yet: ${command} ${args.join(' ')}`)
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
 * The commands that install redis-server without asking anyone; none where that is not ours to do.
 *
 * @param {{ isRoot: boolean, maySudo: boolean, has: (program: string) => boolean }} machine
 * @returns {{ command: string, args: string[], optional: boolean }[]}
 */
export function installPlan({ isRoot, maySudo, has }) {
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
    { ...asRoot('install', '-y', '--no-install-recommends', 'redis-server'), optional: false },
  ]
}

/**
 * What a person should do on this machine, in one sentence.
 *
 * @param {{ platform: string, has: (program: string) => boolean }} machine
 * @returns {string}
 */
export function adviceFor({ platform, has }) {
  const commands = [
    ['apt-get', 'sudo apt-get install redis-server'],
    ['apk', 'apk add redis'],
    ['dnf', 'sudo dnf install redis'],
    ['brew', 'brew install redis'],
  ]
  const fitting = commands.find(([program = '']) => has(program))?.[1]
  const remedy = fitting === undefined ? `install Redis ${oldestMajor} or later (${platform})` : `run: ${fitting}`
  return `The tests need a redis-server program on PATH, and there is none; ${remedy}`
}

/**
 * @param {string} output of `redis-server --version`
 * @returns {string | undefined}
 */
export function versionProblem(output) {
  const version = /\bv=(\d+)\.[\d.]+/.exec(output)
  if (version === null) return `cannot tell its version from "${output.trim()}"`
  if (Number(version[1]) >= oldestMajor) return undefined
  return `Redis ${oldestMajor} or later is needed, this is ${version[0].slice(2)}`
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
 * Whether something accepts connections where a Redis URL points to, within two seconds.
 *
 * @param {string} url never printed: it may hold a password
 * @returns {Promise<boolean>}
 */
export function answers(url) {
  if (!URL.canParse(url)) return Promise.resolve(false)
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname || '127.0.0.1', port: Number(port || 6379), timeout: 2000 })
    /** @param {boolean} result */
    const finish = (result) => {
      socket.destroy()
      resolve(result)
    }
    socket
      .on('connect', () => finish(true))
      .on('timeout', () => finish(false))
      .on('error', () => finish(false))
  })
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

await whenStarted(import.meta.url, ensureRedis)
