// @ts-check
// The cost of a million blocks in Redis: node --expose-gc bench/blocks.js. BLOCKS and CLIENTS change the numbers.
import { createLimiter, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'
import { startRedis } from './lib/redis.js'

const BLOCKS = Number(process.env.BLOCKS ?? 1_000_000)
const DECISIONS = Number(process.env.DECISIONS ?? 40_000)
const ROUNDS = 7

const redis = await startRedis()
/** @type {(() => Promise<void>)[]} */
const closing = []
const empty = await storeOf('none:')
const filled = await storeOf('many:')

const before = await redis.usedMemory()
await measured(`imported ${BLOCKS} blocks`, () => filled.blocks.import(blocks()))
console.log(`Redis: ${((await redis.usedMemory()) - before) / BLOCKS} bytes each`)

globalThis.gc?.()
const heap = memory()
const started = await storeOf('many:')
await measured('the first decision of a store that has just been made', () => limiterOf(started).consume('someone'))
await measured('and until it knows as many as it keeps', async () => {
  // It reads pages until then, and Redis is idle afterwards.
  for (let last = -1, calls = 0; calls !== last; ) {
    last = calls
    await new Promise((resolve) => setTimeout(resolve, 500))
    calls = started.stats()?.blocked ?? 0
  }
  console.log(`it knows ${started.stats()?.blocked}`)
})
globalThis.gc?.()
console.log(`Node: ${((memory() - heap) / 2 ** 20).toFixed(1)} MiB`)

/** @type {Record<string, { nodeUs: number, redisUs: number }[]>} */
const costs = { 'no block at all': [], 'a million blocks, others decide': [], 'blocked clients': [] }
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, list] of Object.entries(costs)) {
    const store = name === 'no block at all' ? empty : started
    const key = (/** @type {number} */ i) =>
      name === 'blocked clients' ? `user-${i % 1000}` : `fresh-${round}-${i % 1000}`
    const cost = await costOf(limiterOf(store), key)
    // The first round compiles.
    if (round > 0) list.push(cost)
  }
}
for (const [name, list] of Object.entries(costs)) {
  console.log(
    `${name}: Node ${median(list.map(({ nodeUs }) => nodeUs))} µs, Redis ${median(list.map(({ redisUs }) => redisUs))} µs`,
  )
}
for (const close of closing.reverse()) await close()
await redis.end()

/** @param {string} prefix */
async function storeOf(prefix) {
  const client = new Redis(redis.port)
  const store = redisStore(client, { prefix, timeout: '10s' })
  closing.push(async () => {
    await store.close()
    client.disconnect()
  })
  await store.ready()
  return store
}

/** @param {import('@sluice/core').Store} store */
function limiterOf(store) {
  return createLimiter({ name: 'api', store, limits: [slidingLog({ limit: 1_000_000, window: '1h' })] })
}

function* blocks() {
  const since = Date.now()
  for (let i = 0; i < BLOCKS; i++) {
    yield {
      kind: 'key',
      value: `user-${i}`,
      policy: 'api',
      since,
      until: since + 86_400_000,
      times: 1,
      reason: 'fraud',
    }
  }
}

/** 100 decisions in flight. @param {import('@sluice/core').Limiter} limiter @param {(i: number) => string} key */
async function costOf(limiter, key) {
  const [cpu, { cpuUs }] = [process.cpuUsage(), await redis.cost()]
  let next = 0
  await Promise.all(
    Array.from({ length: 100 }, async () => {
      while (next < DECISIONS) await limiter.consume(key(next++))
    }),
  )
  const { user, system } = process.cpuUsage(cpu)
  return { nodeUs: (user + system) / DECISIONS, redisUs: ((await redis.cost()).cpuUs - cpuUs) / DECISIONS }
}

function memory() {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** @param {number[]} values */
function median(values) {
  return (values.sort((a, b) => a - b)[values.length >> 1] ?? 0).toFixed(2)
}

/** @param {string} what @param {() => Promise<unknown>} action */
async function measured(what, action) {
  const start = performance.now()
  await action()
  console.log(`${what}: ${((performance.now() - start) / 1000).toFixed(2)} s`)
}
