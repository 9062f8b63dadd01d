// Gateways that ask a decider about each request, and callers that ask it by JSON.
import { loadavg } from 'node:os'
import { freePort } from '../../scripts/lib/ports.js'
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { cpuUs, startCaddy, startDecider, startEmptyServer, startHaproxy, startNginx } from '../lib/programs.js'
import { startRedis } from '../lib/redis.js'
import { spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { withSpread } from '../report/text.js'

/** @typedef {import('../lib/programs.js').Program} Program */
/**
 * @typedef {object} Contestant
 * @property {string} name
 * @property {string} group whose first one is the bare gateway
 * @property {number} port
 * @property {string} request
 * @property {Program} [decider]
 * @property {number} [decisions] in one request
 */

// No client reaches it, and the state of a client does not grow.
const DOCUMENT = `version: 1
policies:
  all: { limits: [{ algorithm: gcra, limit: 100000000, window: 1m }] }
`
const TRUSTED = ['--trust-proxy', 'loopback']
const CONNECTIONS = 32
const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** @param {object} question */
function post(question) {
  const body = JSON.stringify(question)
  const head = `Content-Type: application/json\r\nContent-Length: ${body.length}`
  return `POST /v1/decide HTTP/1.1\r\nHost: localhost\r\n${head}\r\n\r\n${body}`
}

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const redis = keep(await startRedis())
    const loader = keep(startChild(new URL('../players/raw-load.js', import.meta.url)))
    const contestants = await startAll(keep, redis.port)
    const seconds = size(1000, 100) / 1000
    const busy = loadavg()[0] ?? 0
    const turns = await takeTurns(
      contestants,
      rounds(5),
      async ({ port, request, decider, decisions = 1 }, isWarmUp) => {
        const load = { port, request, seconds: isWarmUp ? seconds / 2 : seconds }
        const alone = await loader.call('send', { ...load, connections: 1 })
        const before = decider ? cpuUs(decider) : 0
        const many = await loader.call('send', { ...load, connections: CONNECTIONS })
        const cpu = decider ? (cpuUs(decider) - before) / (many.requests * decisions) : 0
        return { perSecond: (many.requests * decisions) / many.seconds, cpuUs: cpu, p50: alone.p50, p99: alone.p99 }
      },
    )
    return report(turns, busy)
  })

/**
 * @param {import('../lib/ending.js').Keep} keep
 * @param {number} redisPort
 * @returns {Promise<Contestant[]>}
 */
async function startAll(keep, redisPort) {
  const env = { REDIS_URL: `redis://127.0.0.1:${redisPort}` }
  /** @param {string} dialect @param {Record<string, string>} [more] */
  const decider = async (dialect, more) => {
    const port = await freePort()
    const args = ['--dialect', dialect, ...(dialect === 'json' ? [] : TRUSTED)]
    return { port, program: keep(await startDecider(DOCUMENT, port, args, more)) }
  }
  const forNginx = await decider('nginx')
  const forNginxOnRedis = await decider('nginx', env)
  const forCaddy = await decider('forward-auth')
  const forHaproxy = await decider('haproxy')
  const forJson = await decider('json')
  const forJsonOnRedis = await decider('json', env)
  const empty = await freePort()
  keep(await startEmptyServer(empty))

  /** @param {string} name @param {string} settings @param {Program} [program] @param {string} [http] @returns {Promise<Contestant>} */
  const nginx = async (name, settings, program, http = '') => {
    const port = await freePort()
    keep(await startNginx(`${http} server { listen 127.0.0.1:${port}; ${settings} }`, port))
    return { name, group: 'nginx', port, request: GET, ...(program && { decider: program }) }
  }
  /** @param {string} name @param {number} to @param {Program} [program] */
  const asking = (name, to, program) =>
    nginx(
      name,
      `location / { auth_request /_sluice; empty_gif; }
       location = /_sluice { internal; proxy_pass http://decider/v1/decide; proxy_http_version 1.1; proxy_pass_request_body off;
         proxy_set_header Connection ""; proxy_set_header Content-Length ""; proxy_set_header X-Original-Method $request_method;
         proxy_set_header X-Original-URI $request_uri; proxy_set_header X-Original-Host $host; proxy_set_header X-Original-For $remote_addr; }`,
      program,
      `upstream decider { server 127.0.0.1:${to}; keepalive 64; keepalive_requests 1000000000; }`,
    )
  /** @param {string} name @param {string} route @param {Program} [program] @returns {Promise<Contestant>} */
  const caddy = async (name, route, program) => {
    const port = await freePort()
    const settings = `{\n admin off\n auto_https off\n}\nhttp://:${port} {\n bind 127.0.0.1\n route {\n${route}\n respond "ok"\n }\n}\n`
    keep(await startCaddy(settings, port))
    return { name, group: 'Caddy', port, request: GET, ...(program && { decider: program }) }
  }
  /** @param {string} name @param {string} rule @param {Program} [program] @returns {Promise<Contestant>} */
  const haproxy = async (name, rule, program) => {
    const port = await freePort()
    const settings = `global\n  lua-load sluice.lua\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 30s\n  timeout server 30s
frontend clients\n  bind 127.0.0.1:${port}\n  ${rule}\n  http-request return status 200 content-type text/plain string ok\n`
    keep(await startHaproxy(settings, port))
    return { name, group: 'HAProxy', port, request: GET, ...(program && { decider: program }) }
  }
  const one = { path: '/', ip: '192.0.2.7' }
  const hundred = { requests: Array.from({ length: 100 }, (_, n) => ({ path: '/', ip: `192.0.2.${n}` })) }
  const json = (
    /** @type {string} */ name,
    /** @type {typeof forJson} */ { port, program },
    /** @type {object} */ question,
    decisions = 1,
  ) => ({
    ...{ name, group: 'JSON', port, request: post(question), decider: program, decisions },
  })
  return [
    await nginx('alone', 'location / { empty_gif; }'),
    await nginx(
      'limit_req',
      'location / { limit_req zone=all burst=100000000 nodelay; empty_gif; }',
      undefined,
      'limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;',
    ),
    await asking('auth_request to an empty server', empty),
    await asking('decider, memory', forNginx.port, forNginx.program),
    await asking('decider, redis', forNginxOnRedis.port, forNginxOnRedis.program),
    await caddy('alone', ''),
    await caddy(
      'decider, memory',
      ` forward_auth 127.0.0.1:${forCaddy.port} {\n uri /v1/decide\n copy_headers X-Sluice-Decided-By\n }`,
      forCaddy.program,
    ),
    await haproxy('alone', ''),
    await haproxy(
      'decider, memory',
      `http-request lua.sluice http://127.0.0.1:${forHaproxy.port}/v1/decide closed`,
      forHaproxy.program,
    ),
    json('one, memory', forJson, one),
    json('one, redis', forJsonOnRedis, one),
    json('batches of 100, memory', forJson, hundred, 100),
    json('batches of 100, redis', forJsonOnRedis, hundred, 100),
  ]
}

/** @param {Map<Contestant, Record<'perSecond' | 'cpuUs' | 'p50' | 'p99', number[]>>} turns @param {number} busy load of the machine before */
function report(turns, busy) {
  const groups = [...new Set([...turns.keys()].map(({ group }) => group))]
  const rowsOf = (/** @type {string} */ group) => [...turns].filter(([contestant]) => contestant.group === group)
  return {
    title: 'Gateways',
    text: [
      `Gateways in one process, which ask a decider (\`sluice serve\`, one process) about each request, and callers that ask it by JSON. All on one
machine, with the load. Per second with ${CONNECTIONS} connections; p50 and p99 with one, in ms, and what they are above the gateway alone
in the same round. A second of a core is divided by the CPU of a decision. The load average of the machine before was ${busy.toFixed(1)}.`,
    ],
    tables: groups.map((group) => {
      const rows = rowsOf(group)
      const bare = group === 'JSON' ? undefined : rows[0]?.[1]
      const added = (/** @type {number[]} */ values, /** @type {number[]} */ of) =>
        spread(values.map((value, i) => value - (of[i] ?? 0)))
      return {
        caption: group,
        head: [
          '',
          'decisions/s',
          'CPU µs each',
          'decisions/s of a core',
          'p50',
          'p99',
          ...(bare ? ['p50 added', 'p99 added'] : []),
        ],
        rows: rows.map(([{ name, decider }, { perSecond, cpuUs, p50, p99 }]) => [
          name,
          withSpread(spread(perSecond)),
          decider ? withSpread(spread(cpuUs)) : '',
          decider ? withSpread(spread(cpuUs.map((us) => 1e6 / Math.max(us, 0.01)))) : '',
          withSpread(spread(p50)),
          withSpread(spread(p99)),
          ...(bare ? [withSpread(added(p50, bare.p50)), withSpread(added(p99, bare.p99))] : []),
        ]),
      }
    }),
    plots: {},
    raw: Object.fromEntries([...turns].map(([{ group, name }, figures]) => [`${group}: ${name}`, figures])),
  }
}
