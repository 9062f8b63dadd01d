import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { expect, test } from 'vitest'

test('six per second admits six at one instant', async () => {
  const store = memoryStore({ clock: () => 1_700_000_000_000 })
  const limiter = createLimiter({ store, limits: [gcra({ limit: 6, window: '1s' })] })
  const verdicts = await Promise.all(Array.from({ length: 10 }, () => limiter.consume('k')))
  expect(verdicts.filter((verdict) => verdict.allowed)).toHaveLength(6)
})
