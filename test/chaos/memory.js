// One-shot identities by the million against one part of Sluice, in a process of its own with --expose-gc:
// node --expose-gc memory.js <part> <identities> [<redis port>]. Writes what was measured as JSON.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, everyone, gcra, memoryStore, perMinute, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'

const [part, count, port] = [String(process.argv[2]), Number(process.argv[3]), Number(process.argv[4])]
/** Asked for at once: what of one turn goes to Redis goes in full batches. */
const AT_ONCE = 512

/** Heap and buffers, after collections that leave no garbage. */
async function inUse() {
  for (let n = 0; n < 3; n++) {
    await sleep(20)
    global.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/**
 * Part by part: what one identity does, and how what is kept of it comes to its end.
 * @type {Record<string, () => Promise<{ one: (name: string) => unknown, victim?: () => Promise<boolean>, end: () => Promise<void> }>>}
 */
const parts = {
  async 'memory store'() {
    let shiftMs = 0
    const store = memoryStore({ maxKeys: 20_000, clock: () => Math.floor(performance.now()) + 1e12 + shiftMs })
    const limiter = createLimiter({ name: 'flood', store, limits: [slidingLog({ limit: 3, window: '10m' })] })
    for (let n = 0; n < 3; n++) await limiter.consume('victim')
    return {
      one: (name) => limiter.consume(name),
      // There is no room for all of them: whoever is limited stays so.
      victim: async () => !(await limiter.consume('victim')).allowed,
      async end() {
        // Beyond the hour that states outlive their end with a clock of one's own; then the sweeps.
        shiftMs = 2 * 3_600_000
        await sleep(3000)
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
      end: async () => {
        await limiter.unblock('victim')
        await sleep(2500)
      },
    }
  },
  async 'deny cache'() {
    const client = new Redis(port)
    const store = redisStore(client, { timeoutMs: 5000 })
    // Used up for everybody, so that each identity is refused at its first request, and the refusal kept.
    const limits = [gcra({ limit: 3, window: 600_000 }), gcra({ limit: 3, window: 600_000, key: everyone() })]
    const limiter = createLimiter({ name: 'flood', store, limits })
    for (let n = 0; n < 3; n++) await limiter.consume('victim')
    return {
      one: (name) => limiter.consume(name),
      victim: async () => !(await limiter.consume('victim')).allowed,
      end: () => sleep(2500),
    }
  },
  async 'lease pools'() {
    const client = new Redis(port)
    const store = redisStore(client, { timeoutMs: 5000 })
    const lease = { size: 10, ttl: 500 }
    const limiter = createLimiter({ name: 'flood', store, limits: [slidingLog({ limit: 3, window: 1000, lease })] })
    const strict = createLimiter({ name: 'strict', store, limits: [slidingLog({ limit: 3, window: 600_000, lease })] })
    for (let n = 0; n < 4; n++) await strict.consume('victim')
    return {
      one: (name) => limiter.consume(name),
      victim: async () => !(await strict.consume('victim')).allowed,
      end: () => sleep(3000),
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
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, identities - n) }, (_, i) => one(`${series}-${n + i}`)))
    if (n % (32 * AT_ONCE) === 0) {
      isLimited &&= (await victim?.()) !== false
      // Timers are due, too.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return isLimited
}

// Code is compiled and pools have grown by then.
await flood('warm', 20_000)
const warmBytes = await inUse()
const startedMs = performance.now()
const isVictimLimited = await flood('one-shot', count)
const seconds = (performance.now() - startedMs) / 1000
const fullBytes = await inUse()
await end()
const baseBytes = await inUse()
console.log(JSON.stringify({ part, identities: count, seconds, warmBytes, fullBytes, baseBytes, isVictimLimited }))
process.exit()
