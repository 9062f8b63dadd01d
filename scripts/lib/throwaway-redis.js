import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/**
 * @callback RedisCli
 * @param {string[]} args of redis-cli
 * @param {string} [input] for its standard input
 * @returns {Promise<string>} what it printed, trimmed; errors of Redis are part of that
 */

/**
 * Starts an empty Redis on a Unix socket of its own, and ends it afterwards.
 *
 * @template T
 * @param {(redisCli: RedisCli) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withThrowawayRedis(use) {
  const { socket, end } = await startThrowawayRedis()
  try {
    return await use(async (args, input = '') => {
      const client = spawn('redis-cli', ['-s', socket, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
      // The output of a client that ends before it has read all shows the problem.
      client.stdin.on('error', () => {}).end(input)
      const [printed, complaint] = await Promise.all([text(client.stdout), text(client.stderr), once(client, 'close')])
      return `${printed}${complaint}`.trim()
    })
  } finally {
    await end()
  }
}

/**
 * An empty Redis that keeps nothing on disk. It ends with this process at the latest.
 *
 * @param {string[]} [settings] further ones, such as `--port`, since it listens on its Unix socket alone
 */
export async function startThrowawayRedis(settings = []) {
  // Not below the project: a socket's path may have no more than about 100 characters.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const socket = join(folder, 'redis.sock')
  const own = ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', folder]
  const server = spawn('redis-server', [...own, ...settings], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(server, 'close').catch((error) => error)
  const kill = () => server.kill('SIGKILL')
  process.once('exit', kill)
  const end = async () => {
    process.off('exit', kill)
    kill()
    await ended
    rmSync(folder, { recursive: true, force: true })
    // That asked about the socket. While a socket is the last file that a process has asked about, `realpathSync` of Node's module
    // loader ends at the first folder that it knows, so that modules behind a link load a second time.
    statSync(tmpdir())
  }
  try {
    await ready(server)
  } catch (error) {
    await end()
    throw error
  }
  return { socket, end }
}

/** @param {import('node:child_process').ChildProcessByStdio<null, import('node:stream').Readable, null>} server */
function ready(server) {
  return new Promise((resolve, reject) => {
    let log = ''
    server.stdout.on('data', (chunk) => {
      log += chunk
      if (log.includes('eady to accept connections')) resolve(undefined)
    })
    server.on('error', (error) => reject(new Error(`redis-server: ${error.message}; run: npm run ensure:redis`)))
    server.on('close', () => reject(new Error(`redis-server did not start:\n${log}`)))
  })
}
