// The examples of gateways run behind real ones, and a client in Python, which their tests start.
import { run } from './lib/run.js'

/** @type {import('./lib/system-program.js').Wanted} */
export const caddy = {
  program: 'caddy',
  what: 'Caddy 2.6 or later',
  packages: { 'apt-get': 'caddy', apk: 'caddy', dnf: 'caddy', brew: 'caddy' },
  check: (path) => run(path, ['version'], { quiet: true }),
}

/** @type {import('./lib/system-program.js').Wanted} */
export const haproxy = {
  program: 'haproxy',
  // The first version whose scripts can send requests.
  what: 'HAProxy 2.5 or later, with Lua',
  packages: { 'apt-get': 'haproxy', apk: 'haproxy', dnf: 'haproxy', brew: 'haproxy' },
  // Debian's folder of servers, which is not on every user's PATH.
  folders: ['/usr/sbin', '/usr/local/sbin'],
  async check(path) {
    const said = await run(path, ['-vv'], { quiet: true })
    if (!said.includes('+LUA')) throw new Error(`${path}: expected one that is built with Lua`)
  },
}

/** @type {import('./lib/system-program.js').Wanted} */
export const python = {
  program: 'python3',
  what: 'Python 3.8 or later',
  packages: { 'apt-get': 'python3', apk: 'python3', dnf: 'python3', brew: 'python' },
}
