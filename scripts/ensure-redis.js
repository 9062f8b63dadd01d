// The tests start Redis servers of their own (single, cluster, sentinel), so what they need is a redis-server program.
// Looks for one, installs the system's package where that can be done without asking, and else says what to do.
import { connect } from 'node:net'
import { run, whenStarted } from './lib/run.js'
import { adviceHere, obtain } from './lib/system-program.js'

/** The oldest Redis that the scripts are written for. */
const oldestMajor = 7

/** @type {import('./lib/system-program.js').Wanted} */
export const redisServer = {
  program: 'redis-server',
  what: `Redis ${oldestMajor} or later`,
  packages: { 'apt-get': 'redis-server', apk: 'redis', dnf: 'redis', brew: 'redis' },
}

/**
 * Resolves when the tests can have their Redis; rejects with a message that names the remedy.
 */
export async function ensureRedis() {
  const program = await obtain(redisServer)
  if (program !== undefined) {
    const version = await run(program, ['--version'], { quiet: true })
    const problem = versionProblem(version)
    if (problem !== undefined) throw new Error(`${program}: ${problem}`)
    console.log(`${program}: ${version.trim()}`)
    return
  }

  const remedy = adviceHere(redisServer)
  const url = process.env.REDIS_URL
  if (url === undefined || !(await answers(url))) throw new Error(remedy)
  // One server is something; what needs a cluster or a failover will fail by itself, loudly.
  console.warn(`Only the server of REDIS_URL is there; tests that start servers of their own will fail. ${remedy}`)
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

await whenStarted(import.meta.url, ensureRedis)
