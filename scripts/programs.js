// The programs that commands of this project start. `node scripts/programs.js` finds those of `npm test` and of `npm run test:release`,
// installs what is missing or names it; `node scripts/programs.js chromium` does so for these alone.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { adviceHere, ensure, findProgram } from './lib/system-program.js'

/** @typedef {import('./lib/system-program.js').Wanted} Wanted */
/** @typedef {'test' | 'release' | 'deep' | 'docs' | 'bench'} Command that starts a program; `deep` also starts those of the first two */

/** The oldest Redis that the scripts are written for. */
const OLDEST_REDIS = 7
/** Debian's folders of servers, which are not on every user's PATH. */
const SERVERS = ['/usr/sbin', '/usr/local/sbin']
const CROWDSEC = join(root, '.tmp/crowdsec')

/** @param {...string} args that a program is tried with */
const tried =
  (...args) =>
  (/** @type {string} */ path) =>
    run(path, args, { quiet: true })

/**
 * A program whose packages have its own name, if nothing else is said.
 *
 * @param {string} program
 * @param {string} what
 * @param {Command[]} neededBy
 * @param {Partial<Omit<Wanted, 'packages'>> & { packages?: Partial<Wanted['packages']> }} [more]
 * @returns {Wanted & { neededBy: Command[] }}
 */
const needed = (program, what, neededBy, { packages, ...more } = {}) => ({
  ...{ program, what, neededBy, ...more },
  packages: { 'apt-get': program, apk: program, dnf: program, brew: program, ...packages },
})

export const PROGRAMS = {
  redisServer: needed('redis-server', `Redis ${OLDEST_REDIS} or later`, ['test', 'release', 'bench'], {
    packages: { apk: 'redis', dnf: 'redis', brew: 'redis' },
    check: checkRedis,
    isReplaced: isRedisReplaced,
  }),
  // The first version with an option for the error log that holds before it has read its settings.
  nginx: needed('nginx', 'nginx 1.19.5 or later', ['release', 'bench'], {
    folders: SERVERS,
    check: tried('-v'),
  }),
  postgres: needed('postgres', 'PostgreSQL 13 or later', ['release'], {
    packages: { 'apt-get': 'postgresql', apk: 'postgresql', dnf: 'postgresql-server', brew: 'postgresql' },
    // Debian's folders of all versions. Read each time, as it may have been installed meanwhile.
    folders: () => versionsIn('/usr/lib/postgresql').map((folder) => `${folder}/bin`),
    check: tried('--version'),
  }),
  curl: needed('curl', 'curl 7 or later', ['release']),
  prometheus: needed('prometheus', 'prometheus 2.40 or later, with promtool', ['release'], {
    packages: { dnf: 'golang-github-prometheus' },
    check: (path) => tried('--version')(path.replace(/prometheus$/, 'promtool')),
  }),
  caddy: needed('caddy', 'Caddy 2.6 or later', ['release', 'bench'], { check: tried('version') }),
  // The first version whose scripts can send requests.
  haproxy: needed('haproxy', 'HAProxy 2.5 or later, with Lua', ['release', 'bench'], {
    folders: SERVERS,
    async check(path) {
      const said = await tried('-vv')(path)
      if (!said.includes('+LUA')) throw new Error(`${path}: expected one that is built with Lua`)
    },
  }),
  python: needed('python3', 'Python 3.8 or later', ['release'], { packages: { brew: 'python' } }),
  // Counts per client of a simulation are compared with those of goaccess.
  goaccess: needed('goaccess', 'goaccess 1.4 or later', ['deep'], { check: tried('--version') }),
  // Which clients a simulation refuses is compared with crowdsec. Unpacked, as its installation needs the network of its makers.
  crowdsec: needed('crowdsec', 'crowdsec 1.4 or later', ['deep'], {
    folders: [join(CROWDSEC, 'usr/bin')],
    install: unpackCrowdsec,
  }),
  // A servlet container behind nginx. The folders of its packages are not on the PATH.
  tomcat: needed('catalina.sh', 'Tomcat 10', ['deep'], {
    packages: { 'apt-get': 'tomcat10', apk: 'tomcat10', dnf: 'tomcat', brew: 'tomcat' },
    folders: ['/usr/share/tomcat10/bin', '/usr/share/tomcat/bin', '/opt/homebrew/opt/tomcat/libexec/bin'],
  }),
  chromium: needed('chromium', 'Chromium', ['docs'], { find: () => chromiumPath() }),
}

/** @param {...Command} commands @returns {Wanted[]} */
export const programsOf = (...commands) =>
  Object.values(PROGRAMS).filter(({ neededBy }) => commands.some((command) => neededBy.includes(command)))

/** Resolves when the tests can have their Redis; rejects with a message that names the remedy. */
export const ensureRedis = () => ensure([PROGRAMS.redisServer])

/** The Chromium that `CHROMIUM` names, else one on PATH; undefined without any. */
export function chromiumPath({ CHROMIUM: named, PATH: path } = process.env) {
  if (named) {
    if (!existsSync(named)) throw new Error(`CHROMIUM: expected the path of a Chromium, got ${named}`)
    return named
  }
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  return names.map((name) => findProgram(name, path)).find((found) => found !== undefined)
}

/** @param {string} path */
async function checkRedis(path) {
  const version = await tried('--version')(path)
  const problem = versionProblem(version)
  if (problem !== undefined) throw new Error(`${path}: ${problem}`)
  console.log(`${path}: ${version.trim()}`)
}

async function isRedisReplaced() {
  const url = process.env.REDIS_URL
  if (url === undefined || !(await answers(url))) return false
  // One server suffices for most tests. Those that need a cluster or a failover fail with a clear message.
  const loss = 'Only the server of REDIS_URL is there; tests that start servers of their own will fail.'
  console.warn(`${loss} ${adviceHere([PROGRAMS.redisServer])}`)
  return true
}

/**
 * @param {string} output of `redis-server --version`
 * @returns {string | undefined}
 */
export function versionProblem(output) {
  const version = /\bv=(\d+)\.[\d.]+/.exec(output)
  if (version === null) return `cannot read its version from "${output.trim()}"`
  if (Number(version[1]) >= OLDEST_REDIS) return undefined
  return `Redis ${OLDEST_REDIS} or later is needed, this is ${version[0].slice(2)}`
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

/** Leaves `usr/bin/crowdsec` beside `usr/share/crowdsec/hub`. */
async function unpackCrowdsec() {
  mkdirSync(CROWDSEC, { recursive: true })
  await run('apt-get', ['download', 'crowdsec'], { cwd: CROWDSEC, quiet: true })
  const file = readdirSync(CROWDSEC).find((name) => name.endsWith('.deb'))
  if (file === undefined) throw new Error(`no package crowdsec in ${CROWDSEC}`)
  await run('dpkg', ['-x', file, '.'], { cwd: CROWDSEC, quiet: true })
}

/**
 * The newest first.
 *
 * @param {string} folder
 */
function versionsIn(folder) {
  if (!existsSync(folder)) return []
  const versions = readdirSync(folder).sort((a, b) => Number(b) - Number(a))
  return versions.map((version) => `${folder}/${version}`)
}

await whenStarted(import.meta.url, () => {
  const names = process.argv.slice(2)
  const all = Object.values(PROGRAMS)
  const unknown = names.find((name) => !all.some(({ program }) => program === name))
  if (unknown) throw new Error(`expected ${all.map(({ program }) => program).join(', ')}; got ${unknown}`)
  return ensure(names.length > 0 ? all.filter(({ program }) => names.includes(program)) : programsOf('test', 'release'))
})
