// Millions of one-shot identities against one part of Sluice, in a separate process with --expose-gc:
// node --expose-gc memory.js <part> <identities> [<redis port>]. Writes its measurements as JSON.
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapSnapshot } from 'node:v8'
import { createLimiter, everyone, gcra, memoryStore, perMinute, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'

const [part, count, port] = [String(process.argv[2]), Number(process.argv[3]), Number(process.argv[4])]
/** Requests per turn, so that full batches are sent to Redis. */
const AT_ONCE = 512

/** Bytes of heap and buffers after full collections. */
async function inUse() {
  for (let n = 0; n < 3; n++) {
    await sleep(20)
    global.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** @param {string} series @param {number} n Joined, so that a heap snapshot shows one text and not two halves. */
const nameOf = (series, n) => [series, n].join('-')

/**
 * Counts the identities of each series that are still reachable. It waits until sweeps and timers have left at most `few`
 * one-shot ones, or far longer than they take on a busy machine.
 *
 * @param {number} few
 */
async function countHeld(few) {
  const deadline = performance.now() + 60_000
  for (;;) {
    await sleep(1500)
    const heap = await text(getHeapSnapshot())
    /** @param {string} series */
    const held = (series) => new Set(heap.match(new RegExp(`"${series}-\\d+"`, 'g'))).size
    const left = held('one-shot')
    if (left <= few || performance.now() > deadline) return { left, seen: held('known') }
  }
}

/**
 * By part: the operation of one identity, and the end of the state that it leaves.
 * @type {Record<string, () => Promise<{ one: (name: string) => unknown, victim?: () => Promise<boolean>, end?: () => unknown }>>}
 */
const parts = {
  async 'memory store'() {
    let shiftMs = 0
    const store = memoryStore({ maxKeys: 20_000, clock: () => Math.floor(performance.now()) + 1e12 + shiftMs })
    const limiter = createLimiter({ name: 'flood', store, limits: [slidingLog({ limit: 3, window: '10m' })] })
    for (let n = 0; n < 3; n++) await limiter.consume('victim')
    return {
      one: (name) => limiter.consume(name),
      // The store has no room for all of them, but limited clients stay limited.
      victim: async () => !(await limiter.consume('victim')).allowed,
      end() {
        // Beyond the hour by which states outlive their end with a custom clock.
        shiftMs = 2 * 3_600_000
      },
    }
  },
  async 'block list'() {
    const store = memoryStore()
    const limiter = createLimiter({ name: 'flood', store, limits: [perMinute(3)] })
    await limiter.block('victim', { for: '1h' })
    return {
      one: (name) => limiter.block(name, { for: 500 }),
      victim: async () => (await limiter.consume('victim')).reason === 'blocked',
      end: () => limiter.unblock('victim'),
    }
  },
  async 'deny cache'() {
    const client = new Redis(port)
    const store = redisStore(client, { timeout: 5000 })
    // The shared limit is exhausted, so that the first request of each identity is refused, and the refusal cached.
    const limits = [gcra({ limit: 3, window: 600_000 }), gcra({ limit: 3, window: 600_000, key: everyone() })]
    const limiter = createLimiter({ name: 'flood', store, limits })
    for (let n = 0; n < 3; n++) await limiter.consume('victim')
    return {
      one: (name) => limiter.consume(name),
      victim: async () => !(await limiter.consume('victim')).allowed,
    }
  },
  async 'lease pools'() {
    const client = new Redis(port)
    const store = redisStore(client, { timeout: 5000 })
    const lease = { size: 10, ttl: 500 }
    const limiter = createLimiter({ name: 'flood', store, limits: [slidingLog({ limit: 3, window: 1000, lease })] })
    const strict = createLimiter({ name: 'strict', store, limits: [slidingLog({ limit: 3, window: 600_000, lease })] })
    for (let n = 0; n < 4; n++) await strict.consume('victim')
    // One identity whose pool remains in use.
    setInterval(() => limiter.consume('regular'), 100)
    return {
      one: (name) => limiter.consume(name),
      victim: async () => !(await strict.consume('victim')).allowed,
    }
  },
}

const make = parts[part]
if (!make) throw new Error(`there is no ${part}`)
const { one, victim, end } = await make()

/** @param {string} series @param {number} identities */
async function flood(series, identities) {
  let isLimited = true
  for (let n = 0; n < identities; n += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, identities - n) }, (_, i) => one(nameOf(series, n + i))))
    if (n % (32 * AT_ONCE) === 0) {
      isLimited &&= (await victim?.()) !== false
      // Let timers run.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return isLimited
}

// Afterwards, code is compiled and pools have grown.
await flood('warm', Math.min(20_000, count))
const warmBytes = await inUse()
const startedMs = performance.now()
const isVictimLimited = await flood('one-shot', count)
const seconds = (performance.now() - startedMs) / 1000
const fullBytes = await inUse()
// These are held on purpose, to prove that the count would find a leak.
const known = Array.from({ length: 1000 }, (_, n) => nameOf('known', n))
await Promise.all(known.map((name) => one(name)))
await end?.()
// Regular expressions, parsers and reused arrays may hold the last few.
const held = await countHeld(100)
const baseBytes = await inUse()
const measured = { seconds, warmBytes, fullBytes, baseBytes, ...held, known: known.length }
console.log(JSON.stringify({ part, identities: count, ...measured, isVictimLimited }))
process.exit()
