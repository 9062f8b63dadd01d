import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()

test('bans that begin while a process first reads the index are not reported as lost by Redis', async () => {
  const warnings: string[] = []
  const store = redisStore(client, { timeout: 5000 })
  store.on('warning', ({ code }) => warnings.push(code))
  const limiter = createLimiter({ store, limit: 1, window: '1h', ban: { after: 1, within: '1h', for: ['1h'] } })
  for (let round = 0; round < 120; round++) {
    const keys = Array.from({ length: 100 }, (_, n) => `${round}-${n}`)
    await Promise.all(keys.map((key) => limiter.consume(key)))
    await Promise.all(keys.map((key) => limiter.consume(key)))
  }
  await sleep(1500)
  expect(warnings).toEqual([])
  await store.close()
})
