import { createLimiter, gcra } from '@sluice/core'
import { expect, test } from 'vitest'

test('six per second admits six at one instant', async () => {
  const limiter = createLimiter({ limits: [gcra({ limit: 6, window: '1s' })] })
  const verdicts = await Promise.all(Array.from({ length: 10 }, () => limiter.consume('k')))
  expect(verdicts.filter((verdict) => verdict.allowed)).toHaveLength(6)
})
