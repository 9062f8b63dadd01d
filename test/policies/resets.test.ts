import type { Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { responseToEnd } from '../support/response.js'

const ip = '192.0.2.1'

/** Requests of one client for a policy, and the methods of its limiter. */
async function serviceOf(policy: object) {
  const { guard, limiter } = await changingPolicies({ policies: { api: policy } })
  return {
    limiter,
    /** Returns the verdict, and a function that ends the response. */
    async request() {
      const { response, end } = responseToEnd()
      const { verdict } = await guard(contextOf({ ip, response }))
      return { verdict: verdict as Verdict, end }
    },
    remaining: async (unit: string) => (await limiter.peek({ ip })).units[unit]?.remaining,
  }
}

describe.each(['fixedWindow', 'slidingWindow', 'gcra', 'tokenBucket', 'leakyBucket'])(
  'a reset of a %s',
  (algorithm) => {
    const policy = { limits: [{ algorithm, limit: 3, window: '1h' }], count: { only: 'failure' } }

    test('is followed by no refund of an earlier request, which would be one of a later charge', async () => {
      const service = await serviceOf(policy)
      const first = await service.request()
      await service.limiter.reset({ ip })
      for (let requests = 0; requests < 3; requests++) await (await service.request()).end(401)
      await first.end(200)
      expect(await service.remaining('requests')).toBe(0)
    })

    test('is followed by refunds of later requests, by their outcome and by hand', async () => {
      const service = await serviceOf(policy)
      await service.request()
      await service.limiter.reset({ ip })
      const [byOutcome, byHand] = [await service.request(), await service.request()]
      await byOutcome.end(200)
      expect(await service.limiter.refund({ ip }, byHand.verdict)).toBe(true)
      expect(await service.remaining('requests')).toBe(3)
    })
  },
)

/** A request under way, whose meter has counted 30 tokens. */
async function metered() {
  const service = await serviceOf({ limits: [{ limit: 100, window: '1h', unit: 'tokens' }], cost: { tokens: 10 } })
  const { verdict } = await service.request()
  const meter = verdict.meter('tokens', { step: 10 })
  await meter.add(30)
  return { service, verdict, meter }
}

test('a refund by hand of a request under way ends its meter', async () => {
  const { service, verdict, meter } = await metered()
  await service.limiter.refund({ ip }, verdict)
  await meter.add(30)
  await meter.end()
  expect(await service.remaining('tokens')).toBe(100)
})

test('a settlement by hand of a request under way is of all that its meter has charged', async () => {
  const { service, verdict, meter } = await metered()
  await service.limiter.settle(verdict, { tokens: 40 })
  await meter.end()
  expect(await service.remaining('tokens')).toBe(60)
})
