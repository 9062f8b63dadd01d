// The tests start Redis servers of their own (single, cluster, sentinel), so what they need is a redis-server program.
import { connect } from 'node:net'
import { run, whenStarted } from './lib/run.js'
import { adviceHere, ensure } from './lib/system-program.js'

/** The oldest Redis that the scripts are written for. */
const oldestMajor = 7

/** @type {import('./lib/system-program.js').Wanted} */
export const redisServer = {
  program: 'redis-server',
  what: `Redis ${oldestMajor} or later`,
  packages: { 'apt-get': 'redis-server', apk: 'redis', dnf: 'redis', brew: 'redis' },
  async check(path) {
    const version = await run(path, ['--version'], { quiet: true })
    const problem = versionProblem(version)
    if (problem !== undefined) throw new Error(`${path}: ${problem}`)
    console.log(`${path}: ${version.trim()}`)
  },
  async isReplaced() {
    const url = process.env.REDIS_URL
    if (url === undefined || !(await answers(url))) return false
    // One server suffices for most tests. Those that need a cluster or a failover fail with a clear message.
    const loss = 'Only the server of REDIS_URL is there; tests that start servers of their own will fail.'
    console.warn(`${loss} ${adviceHere([redisServer])}`)
    return true
  },
}

/** Resolves when the tests can have their Redis; rejects with a message that names the remedy. */
export const ensureRedis = () => ensure([redisServer])

/**
 * @param {string} output of `redis-server --version`
 * @returns {string | undefined}
 */
export function versionProblem(output) {
  const version = /\bv=(\d+)\.[\d.]+/.exec(output)
  if (version === null) return `cannot read its version from "${output.trim()}"`
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
