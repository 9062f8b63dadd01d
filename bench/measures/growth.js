// The growth of the cost of a decision: with keys, the size of a limit, limits, processes and masters.
import { startChild } from '../lib/child.js'
import { ending } from '../lib/ending.js'
import { decide, flush, join } from '../lib/players.js'
import { startCluster, startRedis } from '../lib/redis.js'
import { median, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { linePlot } from '../report/plot.js'
import { withSpread } from '../report/text.js'

/**
 * @typedef {import('../run.js').Effort} Effort
 * @typedef {Awaited<ReturnType<typeof decide>>} Cost
 * @typedef {{ size: number, figures: { [Name in keyof Cost]: number[] } }[]} Curve from small to large
 */

/** Far from each other, so that no cache helps, and coprime to every number of keys. */
const STEP = 7919
/** The initial entries of each key where the number of keys grows. */
const FILLED = 10
const LOG = ['slidingLog', { limit: 100, window: '1h' }]

/** @type {import('../run.js').Measure} */
export async function measure(effort) {
  const keys = await byKeys(effort)
  const limitSize = await byLimitSize(effort)
  const limits = await byLimits(effort)
  const processes = await byProcesses(effort)
  const masters = await byMasters(effort)
  const memory = await byKeysInMemory(effort)
  const curves = { keys, 'limit size': limitSize, ...limits, processes, masters }
  const ours = /** @type {Curve} */ (keys['sluice, exact log'])
  const logs = /** @type {Curve} */ (limits['limits per decision']?.['exact logs on one key'])
  return {
    title: 'Growth of cost',
    text: [
      `100 in flight each. By keys: every decision is the first on a key that holds ${FILLED} entries, and the next is on ` +
        'another far from it. By limit size: every log holds half of its limit. By limits: their windows differ, their ' +
        'key does not, so that logs share their entries. By processes: all at once, each with 100 in flight, on one Redis. By masters: a decision goes to ' +
        'the master of its slot, and only decisions of one slot can share a command.',
    ],
    tables: [
      ...Object.entries(curves).map(([by, lines]) => table(by, lines)),
      {
        caption: 'by keys, state in memory: Node CPU per decision, µs',
        head: ['keys', ...memory.map(({ size }) => size.toLocaleString('en'))],
        rows: [['sluice, exact log', ...memory.map(({ nodeUs }) => withSpread(spread(nodeUs)))]],
      },
    ],
    plots: Object.fromEntries(
      Object.entries(curves).map(([by, lines]) => [
        `growth-${by.replaceAll(' ', '-')}`,
        linePlot(
          `Redis CPU per decision, µs, by ${by}`,
          { x: by },
          Object.entries(lines).map(([name, curve]) => ({
            name,
            points: curve.map(({ size, figures }) => [size, median(figures.redisUs)]),
          })),
        ),
      ]),
    ),
    found: {
      growth: ratioOfEnds(ours, 1e6),
      'four-limits': ratioOfEnds(logs, 4),
    },
    raw: { ...curves, memory },
  }
}

/**
 * Redis CPU at `size` against that at the smallest size.
 *
 * @param {Curve} curve
 * @param {number} size
 */
function ratioOfEnds(curve, size) {
  const at = curve.find((point) => point.size === size) ?? curve.at(-1)
  return ratio(at?.figures.redisUs ?? [], curve[0]?.figures.redisUs ?? [])
}

/**
 * @param {string} by
 * @param {Record<string, Curve>} lines
 */
function table(by, lines) {
  const sizes = Object.values(lines)[0]?.map(({ size }) => size.toLocaleString('en')) ?? []
  return {
    caption: `by ${by}: µs per decision, and Redis CPU against the first column`,
    head: [by, ...sizes],
    rows: Object.entries(lines).flatMap(([name, curve]) => [
      [`${name}: Redis CPU`, ...curve.map(({ figures }) => withSpread(spread(figures.redisUs)))],
      [`${name}: against the first`, ...curve.map(({ size }) => withSpread(ratioOfEnds(curve, size), '×'))],
      [`${name}: Node CPU`, ...curve.map(({ figures }) => withSpread(spread(figures.nodeUs)))],
    ]),
  }
}

/**
 * Every timed decision is the first on its key since that was filled, whatever the number of keys, so that all send Redis the
 * same commands. In an earlier version, a thousand keys had ninety entries each while a million went from one to two, which is
 * another part of the script. That version gave 1.45 times, and this one gives 1.5, so the script is not the cause. A million
 * keys are in no cache of the processor, and a log has more data than a counter.
 *
 * @param {Effort} effort
 * @returns {Promise<Record<string, Curve>>}
 */
function byKeys({ rounds, size, some, isFull }) {
  return ending(async (keep) => {
    const sizes = some([1e3, 1e4, 1e5, ...(isFull ? [1e6, 1e7] : [1e6])]).map((keys) =>
      size(keys, Math.min(keys, 2000) / 10),
    )
    const names = ['sluice, exact log', 'rate-limit-redis']
    const points = []
    for (const name of names) {
      for (const keys of sizes) {
        const server = keep(await startRedis())
        const player = keep(await join(name, [server], { name, rule: { limit: 100, windowMs: 86_400_000 } }))
        points.push({ ...player, name, keys, server, unused: 0 })
      }
    }
    const count = size(1000, 100)
    const turns = await takeTurns(points, rounds(7), async (point) => {
      const costs = []
      for (let burst = 0; burst < 10; burst++) {
        if (point.unused < count) {
          await flush([point.server])
          await point.child.call('fill', { keys: point.keys, cost: FILLED })
          point.unused = point.keys
        }
        const first = point.keys - point.unused
        point.unused -= count
        costs.push(await decide([point], { count, inFlight: 100, keys: point.keys, step: STEP, first }))
      }
      return mean(costs)
    })
    return curvesOf(names, turns)
  })
}

/**
 * @param {Cost[]} costs
 * @returns {Cost}
 */
function mean(costs) {
  const names = /** @type {(keyof Cost)[]} */ (Object.keys(costs[0] ?? {}))
  const of = (/** @type {keyof Cost} */ name) => costs.reduce((sum, cost) => sum + cost[name], 0) / costs.length
  return /** @type {Cost} */ (Object.fromEntries(names.map((name) => [name, of(name)])))
}

/**
 * @param {readonly string[]} names
 * @param {Map<{ name: string, keys: number }, Curve[number]['figures']>} turns
 * @returns {Record<string, Curve>}
 */
function curvesOf(names, turns) {
  const all = [...turns]
  return Object.fromEntries(
    names.map((name) => [
      name,
      all.filter(([point]) => point.name === name).map(([{ keys }, figures]) => ({ size: keys, figures })),
    ]),
  )
}

/** @param {Effort} effort */
function byLimitSize({ rounds, size, some }) {
  return ending(async (keep) => {
    const server = keep(await startRedis())
    const name = 'sluice, exact log'
    const count = size(8000, 200)
    const points = []
    for (const limit of some([10, 100, 1000, 10_000, 100_000])) {
      const limits = /** @type {any} */ ([['slidingLog', { limit, window: '1h' }]])
      // Enough keys, so that none reaches its limit.
      const keys = Math.max(10, Math.ceil(count / (limit / 2 - 1)))
      points.push({ ...keep(await join(name, [server], { limits })), name, keys, limit })
    }
    const turns = await takeTurns(points, rounds(5), async (point) => {
      await flush([server])
      await point.child.call('fill', { keys: point.keys, cost: point.limit / 2 })
      return decide([point], { count, inFlight: 100, keys: point.keys })
    })
    return { [name]: [...turns].map(([{ limit }, figures]) => ({ size: limit, figures })) }
  })
}

/** @param {Effort} effort @returns {Promise<Record<string, Record<string, Curve>>>} */
function byLimits({ rounds, size, some }) {
  return ending(async (keep) => {
    const server = keep(await startRedis())
    const windows = ['1m', '1h', '2h', '4h', '8h', '1d', '2d', '4d']
    const algorithms = { 'exact logs on one key': 'slidingLog', gcra: 'gcra' }
    const points = []
    for (const [name, algorithm] of Object.entries(algorithms)) {
      for (const many of some([1, 2, 4, 8])) {
        const limits = windows.slice(0, many).map((window, i) => [algorithm, { limit: 100 * (i + 1), window }])
        points.push({ ...keep(await join(name, [server], { limits: /** @type {any} */ (limits) })), name, keys: many })
      }
    }
    const count = size(10_000, 200)
    const turns = await takeTurns(points, rounds(5), async (point) => {
      await flush([server])
      return decide([point], { count, inFlight: 100, keys: Math.ceil(count / 100) })
    })
    return { 'limits per decision': curvesOf(Object.keys(algorithms), turns) }
  })
}

/** @param {Effort} effort @returns {Promise<Record<string, Curve>>} */
function byProcesses({ rounds, size, some }) {
  return ending(async (keep) => {
    const server = keep(await startRedis())
    const names = ['sluice, exact log', 'rate-limit-redis']
    const many = some([1, 2, 4, 8])
    /** @type {Record<string, import('../lib/players.js').Joined[]>} */
    const joined = {}
    for (const name of names) {
      const asked = Array.from({ length: Math.max(...many) }, () => join(name, [server], { name }))
      joined[name] = (await Promise.all(asked)).map((player) => keep(player))
    }
    const points = names.flatMap((name) => many.map((keys) => ({ name, keys })))
    const count = size(16_000, 400)
    const turns = await takeTurns(points, rounds(5), async ({ name, keys: processes }) => {
      await flush([server])
      const players = (joined[name] ?? []).slice(0, processes)
      return decide(players, { count: count / processes, inFlight: 100, keys: Math.ceil(count / 100) })
    })
    return curvesOf(names, turns)
  })
}

/** @param {Effort} effort @returns {Promise<Record<string, Curve>>} */
function byMasters({ rounds, size, some }) {
  return ending(async (keep) => {
    const name = 'sluice, exact log'
    const limits = /** @type {any} */ ([LOG])
    const asked = some([1, 2, 3]).map(async (masters) => {
      const servers = await startCluster(keep, masters)
      return { ...keep(await join(name, servers, { limits, isCluster: true })), name, keys: masters }
    })
    const points = await Promise.all(asked)
    const count = size(6000, 200)
    const turns = await takeTurns(points, rounds(5), async (point) => {
      await flush(point.servers)
      return decide([point], { count, inFlight: 100, keys: Math.ceil(count / 50) })
    })
    return curvesOf([name], turns)
  })
}

/** @param {Effort} effort */
function byKeysInMemory({ rounds, size, some }) {
  return ending(async (keep) => {
    const child = keep(startChild(new URL('../players/memory.js', import.meta.url)))
    await child.call('join', { name: 'sluice, exact log' })
    const sizes = some([1e3, 1e4, 1e5, 1e6]).map((keys) => size(keys, keys / 1000 + 10))
    const points = sizes.map((keys) => ({ keys }))
    const turns = await takeTurns(points, rounds(2), async ({ keys }) => {
      await child.call('fill', { keys, limit: 1000 })
      return child.call('decide', { count: size(100_000, 200) })
    })
    return [...turns].map(([{ keys }, { nodeUs }]) => ({ size: keys, nodeUs: /** @type {number[]} */ (nodeUs) }))
  })
}
