// `node bench/bridges.js`: requests per second, CPU of Node and of Redis under limiters of others at 64 connections, with our
// store in place of their own on Redis. A round is a fresh process with each, one after the other. Needs a build. Options:
// --rounds <n>, --seconds <s>. @nestjs/throttler is left out, as it has no store for Redis of its own.
import { parseArgs } from 'node:util'
import { whenStarted } from '../scripts/lib/run.js'
import { startChild } from './lib/child.js'
import { ending } from './lib/ending.js'
import { startRedis } from './lib/redis.js'
import { median, medianInterval } from './lib/stats.js'

const PEERS = ['express-rate-limit', 'hono-rate-limiter', '@fastify/rate-limit', 'rate-limiter-flexible']
const FIGURES = /** @type {const} */ (['perSecond', 'nodeUs', 'redisUs'])

/** @typedef {Record<typeof FIGURES[number], number>} Figures */

/** @param {string} peer @param {boolean} isOurs @param {number} seconds @returns {Promise<Figures>} */
const measure = (peer, isOurs, seconds) =>
  ending(async (keep) => {
    const redis = keep(await startRedis())
    const server = keep(startChild(new URL('./players/bridges.js', import.meta.url)))
    const loader = keep(startChild(new URL('./players/http-load.js', import.meta.url)))
    const port = await server.call('serve', { peer, isOurs, redisPort: redis.port })
    const load = { port, connections: 64, amount: 0 }
    await loader.call('send', { ...load, seconds: 2 })
    await redis.admin.flushall()
    const before = [await server.call('cpuUs'), (await redis.cost()).cpuUs]
    const sent = await loader.call('send', { ...load, seconds })
    const after = [await server.call('cpuUs'), (await redis.cost()).cpuUs]
    const [nodeUs = 0, redisUs = 0] = after.map((us, i) => (us - (before[i] ?? 0)) / sent.requests)
    return { perSecond: sent.requests / sent.seconds, nodeUs, redisUs }
  })

await whenStarted(import.meta.url, async () => {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '7' }, seconds: { type: 'string', default: '3' } },
  })
  console.log('| limiter | figure | its own store | ours | ours / own, 95 % interval |\n|---|---|---|---|---|')
  for (const peer of PEERS) {
    /** @type {Figures[][]} */
    const pairs = []
    for (let round = 0; round < Number(values.rounds); round++) {
      const isOursFirst = round % 2 === 1
      const first = await measure(peer, isOursFirst, Number(values.seconds))
      const second = await measure(peer, !isOursFirst, Number(values.seconds))
      pairs.push(isOursFirst ? [second, first] : [first, second])
    }
    for (const figure of FIGURES) {
      const of = (/** @type {number} */ side) => pairs.map((pair) => /** @type {Figures} */ (pair[side])[figure])
      const [own, ours] = [of(0), of(1)]
      const { low, high } = medianInterval(ours.map((value, i) => value / (own[i] ?? Number.NaN)))
      const cells = [median(own), median(ours)].map((value) => value.toFixed(1))
      console.log(`| ${[peer, figure, ...cells, `${low.toFixed(2)} to ${high.toFixed(2)}`].join(' | ')} |`)
    }
  }
})
