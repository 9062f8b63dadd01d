// Whole servers under load: bare, with us, and with the framework's own rate limiter.
import { CLIENT_HEADER, peers } from '../contestants/http.js'
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { startRedis } from '../lib/redis.js'
import { median, percent, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { barPlot } from '../report/plot.js'
import { withSpread } from '../report/text.js'

/** @type {import('../contestants/http.js').Framework[]} */
const FRAMEWORKS = ['Fastify', 'Koa', 'Express']
/** @type {{ limiter: import('../contestants/http.js').Limiter, where?: 'memory' | 'redis' }[]} */
const KINDS = [
  { limiter: 'bare' },
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
    const servers = []
    for (const framework of FRAMEWORKS) {
      for (const kind of KINDS) servers.push(await startServer(keep, framework, kind, redis.port))
    }
    const load = { connections: size(100, 10), seconds: 0.5, amount: size(0, 100) }
    const turns = await takeTurns(servers, rounds(11), async ({ child, port }) => {
      // So that nobody reaches a limit in a run that is many turns long; those in memory have a minute.
      await redis.admin.flushall()
      const before = await child.call('cpuUs')
      const sent = await loader.call('send', { port, ...load })
      const cpuUs = (await child.call('cpuUs')) - before
      const { requests, seconds, p50, p99, p999 } = sent
      return { perSecond: requests / seconds, cpuUs: cpuUs / requests, p50, p99, p999 }
    })
    return report([...turns].map(([server, figures]) => ({ ...server, figures })))
  })

/**
 * @param {import('../lib/ending.js').Keep} keep
 * @param {import('../contestants/http.js').Framework} framework
 * @param {typeof KINDS[number]} kind
 * @param {number} redisPort
 */
async function startServer(keep, framework, { limiter, where }, redisPort) {
  const child = keep(startChild(new URL('../players/http-server.js', import.meta.url)))
  const what = { framework, limiter, ...(where === 'redis' ? { redisPort } : {}) }
  if (limiter !== 'bare') await checkThatItCounts(child, what)
  const port = await child.call('serve', what)
  const who = limiter === 'peer' && where ? peers[framework][where] : limiter
  return { framework, limiter, where, child, port: Number(port), name: where ? `${who}, ${where}` : who }
}

/**
 * Throws unless a server like this refuses what is over its limit.
 *
 * @param {import('../lib/child.js').Child} child
 * @param {object} what
 */
async function checkThatItCounts(child, what) {
  const limit = 5
  const headers = { [CLIENT_HEADER]: `check:${Math.random()}` }
  const port = await child.call('serve', { ...what, limit })
  const statuses = []
  for (let i = 0; i <= limit; i++) {
    const response = await fetch(`http://127.0.0.1:${port}`, { headers })
    await response.text()
    statuses.push(response.status)
  }
  const expected = [...new Array(limit).fill(200), 429]
  if (String(statuses) !== String(expected)) throw new Error(`${JSON.stringify(what)} answered ${statuses}`)
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
    const byClock = percent(ratio(ours.perSecond, bare.perSecond))
    const peerByClock = ratio(ours.perSecond, peer.perSecond)
    return [
      [
        `http-${framework}`,
        { ...percent(ratio(bare.cpuUs, ours.cpuUs)), note: `by the clock ${withSpread(byClock, ' %')}` },
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
        'processes of their own on one machine and in each other’s way. So what counts is the CPU of the server per ' +
        'request: on a machine that leaves it a core of its own, throughput is one second by that. Every limiter counts by the same header, 1,000 per minute, and sends headers: ' +
        'we draft 11, our default, over the exact log, our default; express-rate-limit draft 8; the others their own.',
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
