// One process of a service, on the built package as users get it. Receives runs over IPC, and returns outcomes.
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const { slidingLog, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, concurrency } = sluice
/** @type {Record<string, (options: any) => sluice.Limit<string>>} */
const constructors = { slidingLog, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, concurrency }

const client = new Redis(process.env.REDIS_URL ?? '')
// A long timeout: the test is about the number admitted on a busy machine, not about speed.
const store = sluice.redisStore(client, { timeout: 15_000 })

/** @param {{ limiter: { name: string, make: string, options: object }, key: string, requests: number, release?: boolean }} run */
async function answer({ limiter: { name, make, options }, key, requests, release }) {
  const limit = /** @type {(options: object) => sluice.Limit<string>} */ (constructors[make])(options)
  const limiter = sluice.createLimiter({ name, store, limits: [limit] })
  /** @type {sluice.Verdict[]} */
  const admitted = []
  /** @type {string[]} */
  const errors = []
  const pending = Array.from({ length: requests }, async () => {
    try {
      const verdict = await limiter.consume(key)
      if (verdict.allowed) admitted.push(verdict)
    } catch (error) {
      errors.push(String(error))
    }
  })
  await Promise.all(pending)
  if (release) for (const verdict of admitted) await limiter.release(verdict)
  const clockMs = performance.timeOrigin + performance.now()
  process.send?.({ admitted: admitted.length, errors, clockMs, dateMs: Date.now() })
}

process.on('message', answer)
// The process ends with the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
