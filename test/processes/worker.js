// One process of a service, on the built package as users get it. Told what to do over IPC:
// { limiter: { make, options }, key, requests, release } -> { admitted, errors, clockMs }
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const { slidingLog, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, concurrency } = sluice
const constructors = { slidingLog, gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, concurrency }

const client = new Redis(process.env.REDIS_URL)
// Patient: this test is about how many are admitted on a busy machine, not about how fast.
const store = sluice.redisStore(client, { timeoutMs: 15_000 })

process.on('message', async ({ limiter: { name, make, options }, key, requests, release }) => {
  const limiter = sluice.createLimiter({ name, store, limits: [constructors[make](options)] })
  const asked = Array.from({ length: requests }, () => limiter.consume(key))
  const outcomes = await Promise.allSettled(asked)
  const verdicts = outcomes.filter(({ status }) => status === 'fulfilled').map(({ value }) => value)
  const admitted = verdicts.filter((verdict) => verdict.allowed)
  const errors = outcomes.filter(({ status }) => status === 'rejected').map(({ reason }) => String(reason))
  if (release) for (const verdict of admitted) await limiter.release(verdict)
  process.send({
    admitted: admitted.length,
    errors,
    clockMs: performance.timeOrigin + performance.now(),
    dateMs: Date.now(),
  })
})

// Never outlive the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send('ready'))
