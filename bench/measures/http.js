// Whole servers under load: bare, with us, and with the framework's own rate limiter.
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { checkThatItCounts, FRAMEWORKS, isFloor, startServer } from '../lib/http-servers.js'
import { startRedis } from '../lib/redis.js'
import { median, percent, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { barPlot } from '../report/plot.js'
import { withSpread } from '../report/text.js'

/** @type {Omit<import('../lib/http-servers.js').Kind, 'framework'>[]} */
const KINDS = [
  { limiter: 'bare' },
  { limiter: 'turn' },
  { limiter: 'ping', where: 'redis' },
  { limiter: 'sluice', where: 'memory' },
  { limiter: 'peer', where: 'memory' },
  { limiter: 'sluice', where: 'redis' },
  { limiter: 'peer', where: 'redis' },
]

/** @typedef {Record<'perSecond' | 'cpuUs' | 'p50' | 'p99' | 'p999', number[]>} Figures */

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const redis = keep(await startRedis())
    const loader = keep(startChild(new URL('../players/http-load.js', import.meta.url)))
    const load = { connections: size(100, 10), amount: size(0, 100) }
    const kinds = FRAMEWORKS.flatMap((framework) => KINDS.map((kind) => ({ framework, ...kind })))
    for (const kind of kinds) if (!isFloor(kind)) await checkThatItCounts(kind, redis.port)

    /** @type {Map<string, Parameters<typeof report>[0][number]>} */
    const rows = new Map()
    // The same program may run twice as fast in one process as in the next, for its whole life. Therefore each has several
    // processes, and every timed one has served nothing else.
    for (let life = 0; life < rounds(2); life++) {
      await ending(async (keepServer) => {
        const servers = []
        for (const kind of kinds) servers.push(await startServer(keepServer, kind, redis.port))
        const turns = await takeTurns(servers, rounds(4), async ({ child, port }, isWarmUp) => {
          // No client may reach a limit in a run of many turns; those in memory have a minute.
          await redis.admin.flushall()
          const before = await child.call('cpuUs')
          // A server needs some time to reach its full speed.
          const sent = await loader.call('send', { port, seconds: isWarmUp ? 2 : 0.5, ...load })
          const cpuUs = (await child.call('cpuUs')) - before
          const { requests, seconds, p50, p99, p999 } = sent
          return { perSecond: requests / seconds, cpuUs: cpuUs / requests, p50, p99, p999 }
        })
        for (const [{ framework, limiter, where, name }, figures] of turns) {
          const id = `${framework}: ${name}`
          const earlier = rows.get(id)?.figures
          rows.set(id, { framework, limiter, where, name, figures: earlier ? joined(earlier, figures) : figures })
        }
      })
    }
    return report([...rows.values()])
  })

/**
 * @param {Figures} a
 * @param {Figures} b
 * @returns {Figures}
 */
function joined(a, b) {
  const names = /** @type {(keyof Figures)[]} */ (Object.keys(a))
  return /** @type {Figures} */ (Object.fromEntries(names.map((name) => [name, [...a[name], ...b[name]]])))
}

/** @param {{ framework: string, limiter: string, where?: string, name: string, figures: Figures }[]} rows */
function report(rows) {
  const find = (/** @type {string} */ framework, /** @type {string} */ limiter, /** @type {string} */ where) =>
    /** @type {Figures} */ (
      rows.find((row) => row.framework === framework && row.limiter === limiter && (row.where ?? '') === where)?.figures
    )
  const found = FRAMEWORKS.flatMap((framework) => {
    const ours = find(framework, 'sluice', 'redis')
    const bare = find(framework, 'bare', '')
    const peer = find(framework, 'peer', 'redis')
    const ping = find(framework, 'ping', 'redis')
    const byClock = percent(ratio(ours.perSecond, bare.perSecond))
    const peerByClock = ratio(ours.perSecond, peer.perSecond)
    return [
      [
        `http-${framework}`,
        {
          ...percent(ratio(bare.cpuUs, ours.cpuUs)),
          note:
            `by the clock ${withSpread(byClock, ' %')}; ` +
            `one PING per turn and no limiter: ${withSpread(percent(ratio(bare.cpuUs, ping.cpuUs)), ' %')}`,
        },
      ],
      [
        `http-${framework}-peer`,
        { ...ratio(peer.cpuUs, ours.cpuUs), note: `by the clock ${withSpread(peerByClock, '×')}` },
      ],
    ]
  })
  return {
    title: 'HTTP',
    text: [
      'A route that answers with a little JSON, 100 connections, 1,000 clients; server, load (autocannon) and Redis are ' +
        'processes of their own on one machine and in each other’s way. The figure that counts is therefore the CPU of the ' +
        'server per request: on a machine that leaves it a core of its own, throughput is one second by that. Every limiter counts by the same header, 1,000 per minute, and sends headers: ' +
        'we draft 11, our default, over the exact log, our default; express-rate-limit draft 8; the others their own. ' +
        'The floors are the bare server with a middleware that reports nothing and decides nothing: it waits for the end of ' +
        'the turn of the event loop, or for the answer to a PING, of which each turn sends one for all its requests.',
    ],
    tables: FRAMEWORKS.map((framework) => ({
      caption: framework,
      head: ['', 'requests/s', 'of bare', 'server CPU µs', 'of bare, by CPU', 'p50 ms', 'p99 ms', 'p99.9 ms'],
      rows: rows
        .filter((row) => row.framework === framework)
        .map(({ name, figures: { perSecond, cpuUs, p50, p99, p999 } }) => [
          name,
          withSpread(spread(perSecond)),
          withSpread(percent(ratio(perSecond, find(framework, 'bare', '').perSecond)), ' %'),
          withSpread(spread(cpuUs)),
          withSpread(percent(ratio(find(framework, 'bare', '').cpuUs, cpuUs)), ' %'),
          ...[p50, p99, p999].map((ms) => String(median(ms))),
        ]),
    })),
    plots: Object.fromEntries(
      FRAMEWORKS.map((framework) => [
        `http-${framework.toLowerCase()}`,
        barPlot(
          `${framework}: server CPU per request, µs`,
          rows
            .filter((row) => row.framework === framework)
            .map(({ name, limiter, figures }) => ({
              name,
              value: median(figures.cpuUs),
              side: limiter === 'sluice' ? 'ours' : limiter === 'peer' ? 'peer' : 'floor',
            })),
        ),
      ]),
    ),
    found: Object.fromEntries(found),
    raw: Object.fromEntries(rows.map(({ framework, name, figures }) => [`${framework}: ${name}`, figures])),
  }
}
