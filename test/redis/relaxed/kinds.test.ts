import { byIp, createLimiter, fixedWindow, keyed, redisStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { Redis } from 'ioredis'
import { afterAll, expect, test } from 'vitest'
import { freshKey } from '../../contract/store-under-test.js'
import { contextOf } from '../../support/context.js'
import { startRedis } from '../../support/redis-server.js'

// Counts that plans share while their identities have different positions.

const server = await startRedis()
const client = new Redis(server.url)
const store = redisStore(client, { timeout: 5000 })
afterAll(async () => {
  await store.close()
  client.disconnect()
  await server.stop()
})

interface Call {
  readonly tier: string
  readonly account: string
}

const consistency = { syncEvery: '1m' } as const
const perHour = { window: '1h', anchor: 'first-request' } as const

test('a relaxed limit that tiers share is counted by its own key, whatever other limits a tier has', async () => {
  const account = keyed('account', (call: Call) => call.account)
  const shared = fixedWindow<Call>({ limit: 3, ...perHour, key: account })
  const byTier = fixedWindow<Call>({ limit: 1000, ...perHour, key: keyed('tier', (call: Call) => call.tier) })
  const tiers = { free: [byTier, shared], pro: [shared] }
  const limiter = createLimiter<Call>({ name: 'shared', store, tiers, tier: (call) => call.tier, consistency })
  const [used, other] = [freshKey(), freshKey()]
  const admitted = async (tier: string, account: string) => (await limiter.consume({ tier, account })).allowed

  for (let i = 0; i < 3; i++) expect(await admitted('free', used)).toBe(true)

  expect(await admitted('pro', used)).toBe(false)
  for (let i = 0; i < 3; i++) expect(await admitted('pro', other)).toBe(true)
  expect(await admitted('free', other)).toBe(false)
})

test('an identity given by its kind has the relaxed count of its requests', async () => {
  const guard = createGuard({
    name: 'given',
    store,
    limits: [
      fixedWindow({ limit: 1000, ...perHour, key: byIp() }),
      fixedWindow({ limit: 3, ...perHour, key: keyed('account', (request: { account: string }) => request.account) }),
    ],
    consistency,
  })
  const account = freshKey()
  const admitted = async () =>
    (await guard(contextOf({ ip: '192.0.2.7', request: { account } }) as never)).verdict?.allowed
  for (const expected of [true, true, true, false]) expect(await admitted()).toBe(expected)

  expect((await guard.limiter.peek({ account })).remaining).toBe(0)
  await guard.limiter.reset({ account })

  expect((await guard.limiter.peek({ account })).remaining).toBe(3)
  expect(await admitted()).toBe(true)
})
