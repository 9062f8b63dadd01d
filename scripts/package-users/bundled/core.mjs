// Limits in memory and on Redis, over each client, and a list in a file, which is read in a thread of its own.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, fileList, memoryStore, redisStore, tokenBucket } from '@sluice/core'
import { METRICS, startCounting } from '@sluice/core/metrics'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { main } from './support.mjs'

const url = String(process.env.REDIS_URL)
const name = `bundled-${process.pid}-${Date.now()}`

/** @param {import('@sluice/core').Store} store */
async function admitsTwo(store) {
  const limits = [tokenBucket({ capacity: 2, refill: 2, every: '1h' })]
  const limiter = createLimiter({ name, store, limits, key: (/** @type {string} */ client) => client })
  const verdicts = await Promise.all(['ann', 'ann', 'ann'].map((client) => limiter.consume(client)))
  assert.deepEqual(
    verdicts.map(({ allowed }) => allowed),
    [true, true, false],
  )
  await limiter.reset('ann')
}

main(async () => {
  const counting = startCounting()
  await admitsTwo(memoryStore())
  const ioredis = new Redis(url)
  const redis = createClient({ url })
  await redis.connect()
  for (const client of [ioredis, redis]) {
    const store = redisStore(client, { timeout: '10s' })
    await store.ready()
    await admitsTwo(store)
    await store.close()
  }
  ioredis.disconnect()
  redis.destroy()
  assert.equal(
    counting.read().decisions.reduce((sum, { count }) => sum + count, 0),
    9,
  )
  assert(METRICS.length > 10)

  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundled-'))
  const file = join(folder, 'list.netset')
  writeFileSync(file, '192.0.2.0/24\n')
  const list = fileList(file, { format: 'netset' })
  await list.ready()
  assert.equal(list.size, 1)
  await list.close()
  rmSync(folder, { recursive: true })
})
