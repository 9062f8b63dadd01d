// A CommonJS project under Jest 30.
const express = require('express')
const { createLimiter, rateLimit, Verdict } = require('@sluice/express')

test('loads by require and limits', async () => {
  const limiter = createLimiter({ limit: 1, window: '1m' })
  expect((await limiter.consume('ann')).allowed).toBe(true)
  const refused = await limiter.consume('ann')
  expect(refused).toBeInstanceOf(Verdict)
  expect(refused.allowed).toBe(false)
  expect(typeof rateLimit({ limit: 1, window: '1m' })).toBe('function')
  expect(typeof express).toBe('function')
})
