// Servers with few requests in flight and many clients: the cost that a limiter on Redis adds to a request.
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { checkThatItCounts, FRAMEWORKS, isFloor, startServer } from '../lib/http-servers.js'
import { startRedis } from '../lib/redis.js'
import { median, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { withSpread } from '../report/text.js'

/** @type {Omit<import('../lib/http-servers.js').Kind, 'framework'>[]} */
const KINDS = [{ limiter: 'bare' }, { limiter: 'sluice', where: 'redis' }, { limiter: 'peer', where: 'redis' }]
const CONNECTIONS = 64
const CLIENTS = 10_000

/** @typedef {Record<'perSecond' | 'cpuUs' | 'p50' | 'p99', number[]>} Figures */
/** @typedef {{ framework: string, limiter: string, name: string, figures: Figures }} Row */

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const redis = keep(await startRedis())
    const loader = keep(startChild(new URL('../players/http-load.js', import.meta.url)))
    const connections = size(CONNECTIONS, 8)
    const load = { connections, clientsEach: Math.ceil(size(CLIENTS, 80) / connections), amount: size(0, 100) }
    const kinds = FRAMEWORKS.flatMap((framework) => KINDS.map((kind) => ({ framework, ...kind })))
    for (const kind of kinds) if (!isFloor(kind)) await checkThatItCounts(kind, redis.port)

    /** @type {Map<string, Row>} */
    const rows = new Map()
    // Processes of one program differ for their whole life, so each contestant has several.
    for (let life = 0; life < rounds(4); life++) {
      await ending(async (keepServer) => {
        const servers = []
        for (const kind of kinds) servers.push(await startServer(keepServer, kind, redis.port))
        const turns = await takeTurns(servers, rounds(3), async ({ child, port }, isWarmUp) => {
          await redis.admin.flushall()
          const before = await child.call('cpuUs')
          const sent = await loader.call('send', { port, seconds: isWarmUp ? 2 : 1, ...load })
          const cpuUs = (await child.call('cpuUs')) - before
          const { requests, seconds, p50, p99 } = sent
          return { perSecond: requests / seconds, cpuUs: cpuUs / requests, p50, p99 }
        })
        for (const [{ framework, limiter, name }, figures] of turns) {
          const row = rows.get(`${framework}: ${name}`)
          if (row) for (const key of keysOf(figures)) row.figures[key].push(...figures[key])
          else rows.set(`${framework}: ${name}`, { framework, limiter, name, figures })
        }
      })
    }
    return report([...rows.values()])
  })

/** @param {Figures} figures */
const keysOf = (figures) => /** @type {(keyof Figures)[]} */ (Object.keys(figures))

/** @param {Row[]} rows */
function report(rows) {
  const of = (/** @type {string} */ framework, /** @type {string} */ limiter) =>
    /** @type {Row} */ (rows.find((row) => row.framework === framework && row.limiter === limiter)).figures
  /** @param {Row} row @returns {number[]} round by round */
  const added = ({ framework, figures }) => figures.cpuUs.map((us, i) => us - (of(framework, 'bare').cpuUs[i] ?? 0))
  const addedBy = (/** @type {string} */ framework, /** @type {string} */ limiter) =>
    added(/** @type {Row} */ (rows.find((row) => row.framework === framework && row.limiter === limiter)))
  return {
    title: 'HTTP with many clients',
    text: [
      `A route that answers with a little JSON, ${CONNECTIONS} connections, ${CLIENTS.toLocaleString('en')} clients, limits on Redis, everything ` +
        'else as under HTTP. The CPU that a limiter adds is that of its server per request less that of the bare server in the ' +
        'same round: a small difference of large figures, with a wide spread.',
    ],
    tables: [
      {
        caption: 'the peer against ours',
        head: ['', 'CPU added', 'requests/s', 'p99'],
        rows: FRAMEWORKS.map((framework) => [
          framework,
          withSpread(ratio(addedBy(framework, 'peer'), addedBy(framework, 'sluice')), '×'),
          withSpread(ratio(of(framework, 'peer').perSecond, of(framework, 'sluice').perSecond), '×'),
          withSpread(ratio(of(framework, 'peer').p99, of(framework, 'sluice').p99), '×'),
        ]),
      },
      ...FRAMEWORKS.map((framework) => ({
        caption: framework,
        head: ['', 'requests/s', 'server CPU µs', 'added µs', 'p50 ms', 'p99 ms'],
        rows: rows
          .filter((row) => row.framework === framework)
          .map((row) => [
            row.name,
            withSpread(spread(row.figures.perSecond)),
            withSpread(spread(row.figures.cpuUs)),
            row.limiter === 'bare' ? '' : withSpread(spread(added(row))),
            ...[row.figures.p50, row.figures.p99].map((ms) => String(median(ms))),
          ]),
      })),
    ],
    plots: {},
    raw: Object.fromEntries(rows.map(({ framework, name, figures }) => [`${framework}: ${name}`, figures])),
  }
}
