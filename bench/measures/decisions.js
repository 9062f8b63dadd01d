// The cost of a decision with state in Redis, in Node and in Redis, beside the peers.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decide, flush, joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { median, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { barPlot, linePlot } from '../report/plot.js'
import { figure, withSpread } from '../report/text.js'

const RULE = { limit: 100, windowMs: 60_000 }
const IN_FLIGHT = [1, 10, 100, 1000]
const OURS = 'sluice, exact log'
const NAMES = Object.keys(contestants).filter((name) => !/deny cache|leases|sliding window|no decision/.test(name))
/** Contestants slow enough for a shorter turn. */
const SLOW = new Set(['rolling-rate-limiter'])

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const { joined, missing } = await joinAll(keep, NAMES, server, RULE)
    /** @type {Map<number, Map<string, Turns>>} */
    const byLoad = new Map()
    for (const inFlight of IN_FLIGHT) {
      const count = size(inFlight === 1 ? 1500 : inFlight === 10 ? 5000 : 40_000, 200)
      const turns = await takeTurns(joined, rounds(5), async (player) => {
        await flush([server])
        const load = SLOW.has(player.label) ? Math.ceil(count / 10) : count
        // Every key goes from 0 to its limit, so that keys are half full on average, and no decision is a refusal.
        return decide([player], { count: load, inFlight, keys: Math.ceil(load / RULE.limit) })
      })
      byLoad.set(inFlight, new Map([...turns].map(([{ label }, figures]) => [label, figures])))
    }
    return { ...report(byLoad), skipped: missing }
  })

/** @typedef {Record<'perSecond' | 'nodeUs' | 'commandUs' | 'redisUs' | 'calls', number[]>} Turns */

/** @param {Map<number, Map<string, Turns>>} byLoad */
function report(byLoad) {
  const at100 = /** @type {Map<string, Turns>} */ (byLoad.get(100))
  const ours = /** @type {Turns} */ (at100.get(OURS))
  const of = (/** @type {string} */ name) => /** @type {Turns} */ (at100.get(name))
  const peers = [...at100.keys()].filter((name) => contestants[name]?.side === 'peer')
  const plain = peers.filter((name) => !contestants[name]?.autoPipelining)
  const leanest = (/** @type {string[]} */ names) =>
    names.reduce((a, b) => (median(of(a).nodeUs) <= median(of(b).nodeUs) ? a : b))
  const fastest = (/** @type {string[]} */ names) =>
    names.reduce((a, b) => (median(of(a).perSecond) >= median(of(b).perSecond) ? a : b))
  const nodeCpu = (/** @type {string} */ peer) => ratio(of(peer).nodeUs, ours.nodeUs)
  const perSecond = (/** @type {string} */ peer) => ratio(ours.perSecond, of(peer).perSecond)
  const redisCpu = (/** @type {string} */ peer) => ratio(ours.redisUs, of(peer).redisUs)
  // Other programs of the machine can only slow a round down.
  const atBest = (/** @type {Turns} */ turns) => Math.max(...turns.perSecond)
  const than = (/** @type {string} */ peer, /** @type {import('../lib/stats.js').Spread} */ found) =>
    `${peer}: ${withSpread(found, '×')}`
  return {
    title: 'Decisions with state in Redis',
    text: [
      `Every contestant decides on keys that go from none to their limit of ${RULE.limit} per minute, so none is refused; ` +
        'between turns Redis is emptied. “Commands” is the time inside the commands that clients sent (INFO commandstats), ' +
        '“Redis CPU” all CPU of the server (INFO cpu), protocol work included, “Node CPU” all CPU of the deciding process, ' +
        'client included. The last columns compare with our exact log, round by round: 2× is twice as much as ours takes.',
    ],
    tables: [...byLoad].map(([inFlight, turns]) => table(inFlight, turns)),
    plots: {
      'decisions-node-cpu': barPlot('Node CPU per decision, µs, 100 in flight', bars(at100, 'nodeUs')),
      'decisions-redis-cpu': barPlot('Redis CPU per decision, µs, 100 in flight', bars(at100, 'redisUs')),
      'decisions-per-second': barPlot('Decisions per second, 100 in flight', bars(at100, 'perSecond')),
      'decisions-by-load': linePlot(
        'Node CPU per decision, µs, by decisions in flight',
        { x: 'in flight' },
        [OURS, 'sluice, fixed window', 'rate-limit-redis', 'rate-limiter-flexible', '@fastify/rate-limit'].map(
          (name) => ({
            name,
            points: [...byLoad].map(([load, turns]) => [load, median(turns.get(name)?.nodeUs ?? [Number.NaN])]),
          }),
        ),
      ),
    },
    setups: Object.fromEntries([...at100.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
    found: {
      'node-cpu': {
        ...nodeCpu(leanest(peers)),
        note: `${leanest(peers)}; as it is without further settings, ${than(leanest(plain), nodeCpu(leanest(plain)))}`,
      },
      'per-second': {
        ...perSecond(fastest(peers)),
        note:
          `${fastest(peers)}; without further settings, ${than(fastest(plain), perSecond(fastest(plain)))}; ` +
          `the best round of each ${figure(atBest(ours) / Math.max(...peers.map((peer) => atBest(of(peer)))))}×`,
      },
      'redis-cpu': {
        ...redisCpu('rate-limit-redis'),
        note: than('with auto-pipelining', redisCpu('rate-limit-redis, auto-pipelining')),
      },
    },
    raw: Object.fromEntries([...byLoad].map(([load, turns]) => [load, Object.fromEntries(turns)])),
  }
}

/**
 * @param {number} inFlight
 * @param {Map<string, Turns>} turns
 */
function table(inFlight, turns) {
  const ours = /** @type {Turns} */ (turns.get(OURS))
  return {
    caption: `${inFlight} in flight`,
    head: ['', 'decisions/s', 'Node CPU µs', 'commands µs', 'Redis CPU µs', 'per Redis call', 'Node CPU', 'Redis CPU'],
    rows: [...turns].map(([name, { perSecond, nodeUs, commandUs, redisUs, calls }]) => [
      name,
      withSpread(spread(perSecond)),
      withSpread(spread(nodeUs)),
      withSpread(spread(commandUs)),
      withSpread(spread(redisUs)),
      figure(1 / median(calls)),
      withSpread(ratio(nodeUs, ours.nodeUs), '×'),
      withSpread(ratio(redisUs, ours.redisUs), '×'),
    ]),
  }
}

/**
 * @param {Map<string, Turns>} turns
 * @param {keyof Turns} figure
 */
function bars(turns, figure) {
  return [...turns]
    .filter(([name]) => !SLOW.has(name))
    .map(([name, figures]) => ({
      name,
      value: median(figures[figure]),
      side: contestants[name]?.side ?? /** @type {const} */ ('peer'),
    }))
}
