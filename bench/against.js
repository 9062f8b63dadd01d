// `npm run bench:against -- <folder>`: this checkout against another one (an earlier commit, built), in turns.
// A pair is one fresh process of each; which of them goes first alternates. The figure is the CPU time of a decision or
// a request, this checkout's divided by the other's: 1.02 is two percent dearer. Options: --pairs <n>, and names of rows.
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { whenStarted } from '../scripts/lib/run.js'
import { startChild } from './lib/child.js'
import { ending } from './lib/ending.js'
import { startRedis } from './lib/redis.js'
import { median, medianInterval } from './lib/stats.js'

const RULE = { limit: 100, windowMs: 60_000 }

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {(keep: import('./lib/ending.js').Keep, player: (name: string) => URL, world: World) => Promise<number>} costUs
 *
 * @typedef {object} World
 * @property {string} build the root of the checkout whose packages are measured, for players that take them from there
 * @property {import('./lib/redis.js').RedisServer} redis
 * @property {import('./lib/child.js').Child} loader
 */

/** @param {string} name @param {number} inFlight @param {number} keys @returns {Row} */
const redisRow = (name, inFlight, keys) => ({
  name: `redis: ${name}, ${inFlight} in flight, ${keys} keys`,
  async costUs(keep, player, { redis }) {
    const child = keep(startChild(player('redis')))
    await redis.admin.flushall()
    await child.call('join', { port: redis.port, name: `sluice, ${name}`, rule: RULE })
    const count = inFlight === 1 ? 3000 : 30_000
    await child.call('decide', { count, inFlight, keys })
    await redis.admin.flushall()
    const { cpuUs } = await child.call('decide', { count, inFlight, keys })
    return cpuUs / count
  },
})

/**
 * The same while some identities are blocked from every policy, and others ask: Redis's CPU is counted, too.
 *
 * @param {string} name @param {number} inFlight @param {number} keys @param {number} blocks @returns {Row}
 */
const blocksRow = (name, inFlight, keys, blocks) => ({
  name: `redis: ${name}, ${inFlight} in flight, ${keys} keys, ${blocks} blocks`,
  async costUs(keep, player, { redis }) {
    await redis.admin.flushall()
    const client = new Redis(redis.port)
    const store = redisStore(client, { timeoutMs: '10s' })
    for (let n = 0; n < blocks; n++) await store.blocks.add({ key: `blocked-${n}` }, { for: '1h' })
    await store.close()
    client.disconnect()
    const child = keep(startChild(player('redis')))
    await child.call('join', { port: redis.port, name: `sluice, ${name}`, rule: RULE })
    await child.call('decide', { count: 30_000, inFlight, keys })
    // Until it knows the blocks.
    await sleep(4000)
    const before = await redis.cost()
    const { cpuUs } = await child.call('decide', { count: 30_000, inFlight, keys })
    return (cpuUs + (await redis.cost()).cpuUs - before.cpuUs) / 30_000
  },
})

/** @param {string} name @returns {Row} */
const memoryRow = (name) => ({
  name: `memory: ${name}`,
  async costUs(keep, player) {
    const child = keep(startChild(player('memory')))
    const load = { keys: 2000, limit: 1000, count: 300_000 }
    await child.call('join', { name: `sluice, ${name}` })
    // V8 compiles for the first half a million decisions, and what it makes then is not the same in every process.
    for (let round = 0; round < 3; round++) {
      await child.call('fill', load)
      await child.call('decide', load)
    }
    return (await child.call('decide', { ...load, count: 1_000_000 })).nodeUs
  },
})

/** @param {import('./contestants/http.js').Framework} framework @param {'memory' | 'redis'} where @returns {Row} */
const httpRow = (framework, where) => ({
  name: `http: ${framework}, ${where}`,
  async costUs(keep, player, { redis, loader }) {
    const child = keep(startChild(player('http-server')))
    await redis.admin.flushall()
    const ask = { framework, limiter: 'sluice', ...(where === 'redis' ? { redisPort: redis.port } : {}) }
    const port = await child.call('serve', ask)
    await loader.call('send', { port, connections: 100, amount: 0, seconds: 2 })
    await redis.admin.flushall()
    const before = await child.call('cpuUs')
    const { requests } = await loader.call('send', { port, connections: 100, amount: 0, seconds: 1 })
    return ((await child.call('cpuUs')) - before) / requests
  },
})

/** Players of this checkout with the packages of either: an earlier one may not have them. */
const ownPlayer = (/** @type {string} */ name) => new URL(`./players/${name}.js`, import.meta.url)

/** @param {string} name @param {number} clients @returns {Row} */
const waitersRow = (name, clients) => ({
  name: `waiting: one comes and one leaves, 1,000 wait, ${name}`,
  async costUs(keep, _, { build }) {
    const child = keep(startChild(ownPlayer('waiters')))
    await child.call('join', { build, count: 1000, clients })
    await child.call('exchange', { count: 4000 })
    return child.call('exchange', { count: 4000 })
  },
})

/** @param {'plain' | 'odd'} spelling @returns {Row} */
const pathsRow = (spelling) => ({
  name: `policies: paths in ${spelling} spellings`,
  async costUs(keep, _, { build }) {
    const child = keep(startChild(ownPlayer('paths')))
    await child.call('join', { build })
    await child.call('decide', { count: 200_000, spelling })
    return child.call('decide', { count: 200_000, spelling })
  },
})

/** @type {Row[]} */
const ROWS = [
  redisRow('exact log', 100, 400),
  redisRow('exact log', 1, 10_000),
  redisRow('gcra', 100, 10_000),
  blocksRow('gcra', 100, 10_000, 1000),
  memoryRow('exact log'),
  memoryRow('fixed window'),
  .../** @type {const} */ (['Fastify', 'Koa', 'Express']).flatMap((framework) => [
    httpRow(framework, 'memory'),
    httpRow(framework, 'redis'),
  ]),
  pathsRow('plain'),
  pathsRow('odd'),
  waitersRow('first come, first served', 0),
  waitersRow('clients in turn', 100),
]

await whenStarted(import.meta.url, async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { pairs: { type: 'string', default: '15' } },
  })
  const [folder, ...wanted] = positionals
  if (folder === undefined) throw new Error('usage: npm run bench:against -- <folder of another checkout> [rows …]')
  const here = fileURLToPath(new URL('.', import.meta.url))
  const there = join(resolve(folder), 'bench/')
  const unknown = wanted.find((part) => !ROWS.some(({ name }) => name.includes(part)))
  if (unknown !== undefined) {
    throw new Error(
      `no row has ${JSON.stringify(unknown)} in its name; there are:\n${ROWS.map(({ name }) => name).join('\n')}`,
    )
  }
  const rows = ROWS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => process.exit(1))

  await ending(async (keep) => {
    const redis = keep(await startRedis())
    const loader = keep(startChild(new URL('./players/http-load.js', import.meta.url)))
    /** @param {Row} row @param {string} bench */
    const cost = ({ costUs }, bench) =>
      ending((keep) => {
        const at = pathToFileURL(bench)
        return costUs(keep, (name) => new URL(`players/${name}.js`, at), {
          redis,
          loader,
          build: new URL('..', at).href,
        })
      })

    console.log('| row | this, µs | other, µs | ratio | 95 % interval | pairs |\n|---|---|---|---|---|---|')
    for (const row of rows) {
      /** @type {number[][]} */
      const pairs = []
      for (let i = 0; i < Number(values.pairs); i++) {
        const order = i % 2 === 0 ? [here, there] : [there, here]
        const first = await cost(row, /** @type {string} */ (order[0]))
        const second = await cost(row, /** @type {string} */ (order[1]))
        pairs.push(i % 2 === 0 ? [first, second] : [second, first])
      }
      const ratios = pairs.map(([ours = Number.NaN, theirs = Number.NaN]) => ours / theirs)
      const { low, high } = medianInterval(ratios)
      const at = (/** @type {number} */ side) => median(pairs.map((pair) => pair[side] ?? Number.NaN)).toFixed(2)
      const figures = [
        at(0),
        at(1),
        median(ratios).toFixed(3),
        `${low.toFixed(3)} to ${high.toFixed(3)}`,
        ratios.length,
      ]
      console.log(`| ${[row.name, ...figures].join(' | ')} |`)
    }
  })
})
