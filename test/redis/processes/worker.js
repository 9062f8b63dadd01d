// One process of a service, on the built package as users get it. Told what to do over IPC, and answers.
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const { slidingLog, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, concurrency } = sluice
/** @type {Record<string, (options: any) => sluice.Limit<string>>} */
const constructors = { slidingLog, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, concurrency }

const client = new Redis(process.env.REDIS_URL ?? '')
// Patient: this test is about how many are admitted on a busy machine, not about how fast.
const store = sluice.redisStore(client, { timeout: 15_000 })

/** @param {{ limiter: { name: string, make: string, options: object }, key: string, requests: number, release?: boolean }} run */
async function answer({ limiter: { name, make, options }, key, requests, release }) {
  const limit = /** @type {(options: object) => sluice.Limit<string>} */ (constructors[make])(options)
  const limiter = sluice.createLimiter({ name, store, limits: [limit] })
  /** @type {sluice.Verdict[]} */
  const admitted = []
  /** @type {string[]} */
  const errors = []
  const asked = Array.from({ length: requests }, async () => {
    try {
      const verdict = await limiter.consume(key)
      if (verdict.allowed) admitted.push(verdict)
    } catch (error) {
      errors.push(String(error))
    }
  })
  await Promise.all(asked)
  if (release) for (const verdict of admitted) await limiter.release(verdict)
  const clockMs = performance.timeOrigin + performance.now()
  process.send?.({ admitted: admitted.length, errors, clockMs, dateMs: Date.now() })
}

process.on('message', answer)
// Never outlive the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
