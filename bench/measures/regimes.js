// Comparisons with the leanest peers under thin traffic, many clients, and clusters.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decide, flush, joinAll } from '../lib/players.js'
import { startCluster, startRedis } from '../lib/redis.js'
import { median, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { figure, withSpread } from '../report/text.js'

const RULE = { limit: 100, windowMs: 3_600_000 }
const OURS = ['sluice, exact log', 'sluice, gcra', 'sluice, fixed window']
const PEERS = ['rate-limit-redis', '@fastify/rate-limit']

/** @typedef {Record<'perSecond' | 'nodeUs' | 'commandUs' | 'redisUs' | 'calls', number[]>} Turns */

/**
 * @typedef {object} Regime
 * @property {string} name
 * @property {boolean} [isCluster]
 * @property {{ count: number, inFlight: number, keys: number, step?: number, isZipf?: boolean }} load
 */

/** @type {(size: import('../run.js').Effort['size']) => Regime[]} */
const regimes = (size) => [
  {
    name: 'cluster of 3, 10,000 keys, 100 in flight',
    isCluster: true,
    load: { count: size(30_000, 200), inFlight: 100, keys: 10_000 },
  },
  {
    name: 'cluster of 3, 10,000 keys, 1,000 in flight',
    isCluster: true,
    load: { count: size(30_000, 1000), inFlight: 1000, keys: 10_000 },
  },
  {
    name: 'one decision at a time, 10,000 keys',
    load: { count: size(6000, 100), inFlight: 1, keys: 10_000, step: 7919 },
  },
  {
    name: '150,000 new clients, one decision each, 100 in flight',
    load: { count: size(150_000, 200), inFlight: 100, keys: size(150_000, 200) },
  },
  {
    name: 'a million clients by Zipf, 100 in flight',
    load: { count: size(60_000, 200), inFlight: 100, keys: 1_000_000, isZipf: true },
  },
]

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const single = keep(await startRedis())
    const cluster = await startCluster(keep, 3)
    const names = [...OURS, ...PEERS]
    const alone = (await joinAll(keep, names, single, RULE)).joined
    const clustered = (await joinAll(keep, names, cluster, RULE)).joined
    /** @type {{ regime: Regime, turns: Map<string, Turns> }[]} */
    const results = []
    for (const regime of regimes(size)) {
      const turns = await takeTurns(regime.isCluster ? clustered : alone, rounds(5), async (player) => {
        await flush(player.servers)
        // The first moments show which options a cluster supports.
        if (regime.isCluster) await decide([player], { ...regime.load, count: regime.load.inFlight * 2 })
        return decide([player], regime.load)
      })
      results.push({ regime, turns: new Map([...turns].map(([{ label }, figures]) => [label, figures])) })
    }
    return {
      title: 'Who wins where',
      text: [
        `Every contestant alone in its process, in turns, at a limit of ${RULE.limit} per hour. Against the peer that takes ` +
          'least: above 1× it takes more than ours, round by round. “Node” is all CPU of the deciding process, “Redis” all CPU of ' +
          'the server, or of all masters. New clients are decided once each; by Zipf, client n comes 1/n as often as the first.',
      ],
      tables: [summary(results), ...results.map(table)],
      plots: {},
      setups: Object.fromEntries(names.map((name) => [name, contestants[name]?.setup ?? ''])),
      raw: Object.fromEntries(results.map(({ regime, turns }) => [regime.name, Object.fromEntries(turns)])),
    }
  })

/** @param {Map<string, Turns>} turns @param {'nodeUs' | 'redisUs'} what */
function leanest(turns, what) {
  const of = (/** @type {string} */ name) => /** @type {Turns} */ (turns.get(name))
  return PEERS.map(of).reduce((a, b) => (median(a[what]) <= median(b[what]) ? a : b))
}

/** @param {{ regime: Regime, turns: Map<string, Turns> }[]} results */
function summary(results) {
  return {
    caption: 'the leanest peer against ours',
    head: ['', ...OURS.flatMap((name) => [`${name}: Node`, 'Redis']), 'who wins'],
    rows: results.map(({ regime, turns }) => {
      const compared = OURS.map((name) => {
        const ours = /** @type {Turns} */ (turns.get(name))
        return {
          node: ratio(leanest(turns, 'nodeUs').nodeUs, ours.nodeUs),
          redis: ratio(leanest(turns, 'redisUs').redisUs, ours.redisUs),
        }
      })
      const all = compared.flatMap(({ node, redis }) => [node.median, redis.median])
      const winner = all.every((value) => value > 1) ? 'we' : all.every((value) => value < 1) ? 'the peer' : 'depends'
      return [
        regime.name,
        ...compared.flatMap(({ node, redis }) => [withSpread(node, '×'), withSpread(redis, '×')]),
        winner,
      ]
    }),
  }
}

/** @param {{ regime: Regime, turns: Map<string, Turns> }} result */
function table({ regime, turns }) {
  return {
    caption: regime.name,
    head: ['', 'decisions/s', 'Node CPU µs', 'commands µs', 'Redis CPU µs', 'per Redis call'],
    rows: [...turns].map(([name, { perSecond, nodeUs, commandUs, redisUs, calls }]) => [
      name,
      withSpread(spread(perSecond)),
      withSpread(spread(nodeUs)),
      withSpread(spread(commandUs)),
      withSpread(spread(redisUs)),
      figure(1 / median(calls)),
    ]),
  }
}
