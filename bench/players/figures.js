// Limiters in memory at a steady rate, in a process whose store on Redis reports figures or not.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, liveFigures, memoryStore, perHour, perMinute, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { answer } from '../lib/child.js'

const POLICIES = 5
const KEYS = 2000
/** Decisions are made in groups, one each ms: a timer for each would cost more than they do. */
const EVERY_MS = 1

answer({
  /**
   * CPU time per second, in ms.
   * @param {{ port: number, report: boolean, rate: number, seconds: number }} params
   */
  async cost({ port, report, rate, seconds }) {
    const client = new Redis(port)
    const shared = redisStore(client, { timeout: 15_000, ...(report && { report: liveFigures() }) })
    await shared.ready()
    const store = memoryStore()
    const limiters = Array.from({ length: POLICIES }, (_, i) =>
      createLimiter({
        name: `policy-${i}`,
        store,
        limits: [perMinute(100), perHour(1000)],
      }),
    )
    let made = 0
    const decide = async (/** @type {number} */ times) => {
      for (const until = made + times; made < until; made++) {
        await limiters[made % POLICIES]?.consume(`user:${(made * 7919) % KEYS}`)
      }
    }
    const run = async (/** @type {number} */ forSeconds) => {
      const start = performance.now()
      let done = 0
      while (performance.now() - start < forSeconds * 1000) {
        const due = Math.floor(((performance.now() - start) / 1000) * rate)
        await decide(due - done)
        done = due
        await sleep(EVERY_MS)
      }
      return done
    }
    // V8 compiles for the first half a million decisions.
    await decide(600_000)
    await run(2)
    const before = process.cpuUsage()
    const start = performance.now()
    const done = await run(seconds)
    const { user, system } = process.cpuUsage(before)
    const took = (performance.now() - start) / 1000
    await shared.close()
    client.disconnect()
    return { cpuMs: (user + system) / 1000 / took, rate: done / took }
  },
})
