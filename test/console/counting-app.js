// One process of a service that reports its figures, and counts its decisions apart, on the built packages as users get them.
import { createLimiter, liveFigures, perHour, perMinute, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
client.on('error', () => {})
const store = redisStore(client, {
  timeout: 1000,
  report: liveFigures(),
  warnings: { SLUICE_STORE_UNAVAILABLE: false },
})
await store.ready()
const warnings = { SLUICE_ONE_CLIENT: false }
const limiters = [
  createLimiter({ name: 'api', store, limits: [perMinute(20), perHour(50)], warnings }),
  createLimiter({ name: 'login', store, limit: 5, window: '1h', warnings }),
]

const made = { decisions: 0, refused: 0 }
let isLoaded = false

async function load() {
  for (let i = 0; isLoaded; i++) {
    const limiter = limiters[i % 2]
    const { allowed } = (await limiter?.consume(`user-${i % 7}`)) ?? {}
    made.decisions++
    if (!allowed) made.refused++
    if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** @type {Promise<void> | undefined} */
let loading
process.on('message', async (/** @type {'load' | 'rest'} */ command) => {
  isLoaded = command === 'load'
  if (isLoaded) loading ??= load().finally(() => (loading = undefined))
  else {
    await loading
    process.send?.(made)
  }
})
// Never outlive the test.
process.once('disconnect', () => process.exit())
process.send?.('ready')
