// Servers with limiters in memory, beside the same one without: the cost that a limiter adds to a request.
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { checkThatItCounts, FRAMEWORKS, startServer } from '../lib/http-servers.js'
import { median, medianInterval } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { figure } from '../report/text.js'

/** @type {Omit<import('../lib/http-servers.js').Kind, 'framework'>[]} */
const KINDS = [
  { limiter: 'bare' },
  { limiter: 'sluice', where: 'memory' },
  { limiter: 'peer', where: 'memory' },
  { limiter: 'sluice-silent', where: 'memory' },
  { limiter: 'sluice-skip', where: 'memory' },
]
const CONNECTIONS = 64
const CLIENTS = 10_000
/** Requests in a turn. One of Express takes five times as long. */
const AMOUNTS = { Fastify: 10_000, Koa: 10_000, Express: 3000 }
/** So many times as many before those that are measured. */
const WARM_UP = 4
const LIVES = 7
const PAIRS_OF_A_LIFE = 3

/** @typedef {{ framework: string, limiter: string, name: string, cpuUs: number[] }} Row `cpuUs`: per request, round by round */

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const loader = keep(startChild(new URL('../players/http-load.js', import.meta.url)))
    const connections = size(CONNECTIONS, 8)
    const load = { connections, clientsEach: Math.ceil(size(CLIENTS, 80) / connections) }
    /** @type {Map<string, Row>} */
    const rows = new Map()
    for (const framework of FRAMEWORKS) {
      const kinds = KINDS.map((kind) => ({ framework, ...kind }))
      for (const kind of kinds) if (counts(kind.limiter)) await checkThatItCounts(kind)
      // The same program may run faster in one process than in the next, for its whole life.
      for (let life = 0; life < rounds(LIVES); life++) {
        await ending(async (keepServer) => {
          const servers = []
          for (const kind of kinds) servers.push(await startServer(keepServer, kind))
          const turns = await takeTurns(servers, rounds(PAIRS_OF_A_LIFE), async ({ child, port }, isWarmUp) => {
            const amount = size(AMOUNTS[framework] * (isWarmUp ? WARM_UP : 1), 100)
            const before = await child.call('cpuUs')
            const { requests } = await loader.call('send', { port, seconds: 0, amount, ...load })
            return { cpuUs: ((await child.call('cpuUs')) - before) / requests }
          })
          for (const [{ limiter, name }, { cpuUs }] of turns) {
            const row = rows.get(`${framework}: ${name}`)
            if (row) row.cpuUs.push(...cpuUs)
            else rows.set(`${framework}: ${name}`, { framework, limiter, name, cpuUs })
          }
        })
      }
    }
    return report([...rows.values()])
  })

/** Whether a limiter refuses a client at some time. @param {string} limiter */
const counts = (limiter) => limiter !== 'bare' && limiter !== 'sluice-skip'

/** @param {Row[]} rows */
function report(rows) {
  const of = (/** @type {string} */ framework, /** @type {string} */ limiter) =>
    /** @type {Row} */ (rows.find((row) => row.framework === framework && row.limiter === limiter)).cpuUs
  const found = FRAMEWORKS.map((framework) => {
    const [low, high] = bounds(of(framework, 'sluice'), of(framework, 'peer'))
    const less = { median: medianOf(of(framework, 'sluice'), of(framework, 'peer')), low, high }
    return [`http-memory-${framework}`, { ...less, note: 'with the interval that holds the median at 95 %' }]
  })
  return {
    title: 'HTTP in memory',
    text: [
      `A route that answers with a little JSON, ${CONNECTIONS} connections, ${CLIENTS.toLocaleString('en')} clients by a plain header, limits in memory, ` +
        'everything else as under HTTP. All servers of a framework live at the same time and get the same number of requests in turns. ' +
        `Figures are the CPU of the server per request, in pairs of one round, over ${LIVES} lives of each server: the median, and the ` +
        'interval that holds it at 95 %. A server that is skipped has `skip: () => true`; one without fields has `headers: false`. ' +
        'Ours sends `RateLimit-Policy` and `RateLimit` of draft 11, express-rate-limit the same two of draft 8 with a hash of the ' +
        'client in each, and the other peers `X-RateLimit-Limit`, `-Remaining` and `-Reset`. Ours keeps an exact log, its default; ' +
        'peers keep fixed windows.',
    ],
    tables: FRAMEWORKS.map((framework) => ({
      caption: framework,
      head: ['', 'server CPU µs', 'added µs', 'less that of the peer'],
      rows: rows
        .filter((row) => row.framework === framework)
        .map(({ limiter, name, cpuUs }) => [
          name,
          figure(median(cpuUs)),
          limiter === 'bare' ? '' : withBounds(cpuUs, of(framework, 'bare')),
          limiter === 'bare' || limiter === 'peer' ? '' : withBounds(cpuUs, of(framework, 'peer')),
        ]),
    })),
    plots: {},
    found: Object.fromEntries(found),
    raw: Object.fromEntries(rows.map(({ framework, name, cpuUs }) => [`${framework}: ${name}`, cpuUs])),
  }
}

/** Round by round. @param {number[]} values @param {number[]} others */
const less = (values, others) => values.map((value, round) => value - (others[round] ?? Number.NaN))

/** @param {number[]} values @param {number[]} others */
const medianOf = (values, others) => median(less(values, others))

/** @param {number[]} values @param {number[]} others */
function bounds(values, others) {
  const { low, high } = medianInterval(less(values, others))
  return /** @type {const} */ ([low, high])
}

/** @param {number[]} values @param {number[]} others */
function withBounds(values, others) {
  const [low, high] = bounds(values, others)
  return `${figure(medianOf(values, others))} (${figure(low)} to ${figure(high)})`
}
