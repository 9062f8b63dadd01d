import { concurrency, createLimiter, fixedWindow, memoryStore, slidingWindow } from '@sluice/core'
import type { StoreRequest } from '@sluice/core/store'
import { expect, test } from 'vitest'

test.each([
  ['one limit', { limit: 2, window: '1m' as const }, { cost: 1 }],
  ['several', { limits: [fixedWindow({ limit: 2, window: '1h' }), concurrency({ limit: 1 })] }, { cost: 1 }],
  ['a higher cost', { limits: [slidingWindow({ limit: 2, window: '1m' })] }, { cost: 2 }],
])('a store that decides elsewhere may send requests as JSON: %s', async (_, limits, cost) => {
  const store = memoryStore()
  const sent: Pick<StoreRequest, 'identities' | 'costs'>[] = []
  const decide = store.decide.bind(store)
  const elsewhere = Object.assign(store, {
    decide(request: StoreRequest) {
      sent.push(JSON.parse(JSON.stringify(request)))
      return decide(request)
    },
  })
  const verdict = await createLimiter({ name: 'api', store: elsewhere, ...limits }).consume('ann', cost)
  expect(verdict.allowed).toBe(true)
  expect(sent).toMatchObject([{ identities: ['key=ann'], costs: Array(verdict.limits.length).fill(cost.cost) }])
})
