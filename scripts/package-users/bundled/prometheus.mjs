// Metrics of a limiter, as Prometheus reads them.
import assert from 'node:assert/strict'
import { createLimiter } from '@sluice/core'
import { sluiceMetrics } from '@sluice/prometheus'
import { Registry } from 'prom-client'
import { main } from './support.mjs'

main(async () => {
  const register = new Registry()
  sluiceMetrics({ register })
  const limiter = createLimiter({ name: 'mail', limit: 1, window: '1h' })
  for (let n = 0; n < 2; n++) await limiter.consume('ann')
  assert.match(await register.metrics(), /^sluice_requests_total\{policy="mail",.*outcome="limited".*\} 1$/m)
})
