import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()

test('bans that begin while a process reads the index for the first time are not reported as lost by Redis', async () => {
  const warned: string[] = []
  const store = redisStore(client, { timeout: 5000 })
  store.on('warning', ({ code }) => warned.push(code))
  const limiter = createLimiter({ store, limit: 1, window: '1h', ban: { after: 1, within: '1h', for: ['1h'] } })
  for (let round = 0; round < 120; round++) {
    const keys = Array.from({ length: 100 }, (_, n) => `${round}-${n}`)
    await Promise.all(keys.map((key) => limiter.consume(key)))
    await Promise.all(keys.map((key) => limiter.consume(key)))
  }
  await sleep(1500)
  expect(warned).toEqual([])
  await store.close()
})
