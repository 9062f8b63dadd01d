// An ES module under Vitest. Its resolver knows the condition `module`, and must not take it for packages that Node loads.
import { createRequire } from 'node:module'
import * as core from '@sluice/core'
import { startCounting } from '@sluice/core/metrics'
import { createLimiter, rateLimit, Verdict } from '@sluice/express'
import { expect, test } from 'vitest'

const require = createRequire(import.meta.url)

test('Vitest loads one copy, by import and require, and of every entry', async () => {
  expect(core.Verdict).toBe(Verdict)
  expect(require('@sluice/koa').Verdict).toBe(Verdict)
  const counting = startCounting()
  expect((await createLimiter({ limit: 1, window: '1m' }).consume('a')).allowed).toBe(true)
  expect(counting.read().decisions).toHaveLength(1)
  expect(rateLimit({ limit: 1, window: '1m' }).name).toBe('rateLimit')
})
