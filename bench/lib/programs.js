// Programs of a measurement, each with its own files.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { adviceHere, find } from '../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../scripts/programs.js'

const NOBODY = 65534
const CLI = fileURLToPath(new URL('../../packages/cli/bin/sluice.cjs', import.meta.url))

/** @typedef {{ pid: number, end: () => Promise<void> }} Program */

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** @param {import('../../scripts/lib/system-program.js').Wanted} wanted */
function pathOf(wanted) {
  const path = find(wanted)
  if (path === undefined) throw new Error(adviceHere([wanted]))
  return path
}

/**
 * @param {(dir: string) => string[]} command
 * @param {number} port where it listens once it is ready
 * @param {Record<string, string>} [env]
 * @returns {Promise<Program>}
 */
async function start(command, port, env = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const [program = '', ...args] = command(dir)
  const home = { HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir }
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH ?? '', ...home, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  running.add(child)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
    said = (said + text).slice(-2000)
  })
  const closed = once(child, 'close')
  const end = async () => {
    child.kill('SIGKILL')
    await closed
    running.delete(child)
    rmSync(dir, { recursive: true, force: true })
  }
  for (let tries = 0; !(await accepts(port)); tries++) {
    if (tries > 300 || child.exitCode !== null) {
      await end()
      throw new Error(`${program} did not start: ${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { pid: /** @type {number} */ (child.pid), end }
}

/** @param {number} port @returns {Promise<boolean>} */
function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).once('error', () => resolve(false))
  })
}

/** One process, without privileges. @param {string} settings within `http` @param {number} port */
export function startNginx(settings, port) {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  const all = `daemon off; master_process off; pid nginx.pid; error_log stderr;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; ${paths.join(' ')} ${settings} }`
  return start((dir) => {
    writeFileSync(join(dir, 'nginx.conf'), all)
    const command = [pathOf(PROGRAMS.nginx), '-p', dir, '-e', 'stderr', '-c', join(dir, 'nginx.conf')]
    if (process.getuid?.() !== 0) return command
    chownSync(dir, NOBODY, NOBODY)
    return ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', ...command]
  }, port)
}

/** @param {string} settings @param {number} port */
export function startCaddy(settings, port) {
  return start((dir) => {
    writeFileSync(join(dir, 'Caddyfile'), settings)
    return [pathOf(PROGRAMS.caddy), 'run', '--config', join(dir, 'Caddyfile'), '--adapter', 'caddyfile']
  }, port)
}

/** With the script of the example. @param {string} settings @param {number} port */
export function startHaproxy(settings, port) {
  const script = new URL('../../examples/gateways/haproxy/sluice.lua', import.meta.url)
  return start((dir) => {
    writeFileSync(join(dir, 'sluice.lua'), readFileSync(script))
    writeFileSync(join(dir, 'haproxy.cfg'), settings)
    return [pathOf(PROGRAMS.haproxy), '-C', dir, '-f', join(dir, 'haproxy.cfg'), '-db']
  }, port)
}

/** @param {string} document @param {number} port @param {string[]} args @param {Record<string, string>} [env] */
export function startDecider(document, port, args, env) {
  return start(
    (dir) => {
      const file = join(dir, 'policies.yaml')
      writeFileSync(file, document)
      return [process.execPath, CLI, 'serve', '--document', file, '--listen', `127.0.0.1:${port}`, ...args]
    },
    port,
    env,
  )
}

/** A server that responds with 204, and does nothing else. @param {number} port */
export function startEmptyServer(port) {
  const program = `require('node:http').createServer((_, response) => response.writeHead(204).end()).listen(${port}, '127.0.0.1')`
  return start(() => [process.execPath, '-e', program], port)
}

/** The CPU time of a process in µs, in steps of 10 ms. @param {Program} program */
export function cpuUs({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}
