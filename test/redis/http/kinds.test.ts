import { byIp, everyone, keyed, type Limiter, memoryStore, redisStore, type Store, slidingLog } from '@sluice/core'
import { afterAll, describe, expect, test } from 'vitest'
import { type AnyOptions, type AppFactory, type RunningApp, run } from '../../http/support/app.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const { client } = await redisForTests()
const onRedis = redisStore(client, { timeout: 5000 })
const apps: RunningApp[] = []
afterAll(async () => {
  for (const app of apps) await app.close()
  await onRedis.close()
})

/** The address of the attacker, which is also the name of an account made for the attack. */
const ADDRESS = '127.0.0.1'

const stores: readonly (readonly [string, () => Store])[] = [
  ['in memory', memoryStore],
  ['on Redis', () => onRedis],
]

let policies = 0

/** An app behind one limiter, whose requests name an account in a header. */
async function start(framework: AppFactory, options: AnyOptions) {
  const app = await run(framework, { routes: { '/': { limiters: [{ name: `kinds-${policies++}`, ...options }] } } })
  apps.push(app)
  const limiter = app.limiters[0] as unknown as Limiter<unknown>
  const as = async (account: string) => (await fetch(app.url, { headers: { 'x-account': account } })).status
  return { limiter, as }
}

const account = keyed<unknown>('account', (_request, context) => context.header('x-account'))

describe.each(Object.entries(FRAMEWORKS))('%s', (_framework, factory) => {
  describe.each(stores)('%s', (_where, storeOf) => {
    const login = () =>
      start(factory, {
        store: storeOf(),
        limits: [
          slidingLog({ name: 'by-account', limit: 3, window: '15m', key: account }),
          slidingLog({ name: 'by-address', limit: 6, window: '15m', key: byIp() }),
        ],
      })

    test('a reset of an account named like an address leaves the count of the address', async () => {
      const { limiter, as } = await login()
      const statuses: number[] = []
      for (let n = 0; n < 20; n++) {
        statuses.push(await as(`victim-${n}`))
        // As a handler does after the correct password of the attacker's own account.
        statuses.push(await as(ADDRESS))
        await limiter.reset({ account: ADDRESS })
      }
      expect(statuses.filter((status) => status === 200)).toHaveLength(6)
      await limiter.reset({ ip: ADDRESS })
      expect(await as('bob')).toBe(200)
    })

    test('a block of an account named like an address blocks the account alone', async () => {
      const { limiter, as } = await login()
      await limiter.block({ account: ADDRESS }, { for: '1h' })
      expect([await as(ADDRESS), await as('bob')]).toEqual([429, 200])
      await limiter.unblock({ ip: ADDRESS })
      expect(await as(ADDRESS)).toBe(429)
      await limiter.unblock({ account: ADDRESS })
      expect(await as(ADDRESS)).toBe(200)
      await limiter.block({ ip: `::ffff:${ADDRESS}` }, { for: '1h' })
      expect([await as(ADDRESS), await as('bob')]).toEqual([429, 429])
    })

    test('a block of an account named "everyone" blocks that account alone', async () => {
      const limits = [
        slidingLog({ limit: 9, window: '15m', key: account }),
        slidingLog({ limit: 99, window: '15m', key: everyone() }),
      ]
      const { limiter, as } = await start(factory, { store: storeOf(), limits })
      await expect(limiter.block('everyone', { for: '1h' })).rejects.toMatchObject({
        code: 'INVALID_KEY',
        message: expect.stringMatching(/key: expected \{ account: … \} or \{ everyone: … \}, got "everyone"$/),
      })
      expect(await as('ann')).toBe(200)
      await limiter.block({ account: 'everyone' }, { for: '1h' })
      expect([await as('everyone'), await as('ann')]).toEqual([429, 200])
    })
  })

  test('responses do not reveal the identities by which clients are counted', async () => {
    const limits = [
      slidingLog({ name: 'own', limit: 1, window: '15m', key: account }),
      slidingLog({ name: 'all', limit: 1, window: '15m', key: byIp() }),
    ]
    const app = await run(factory, { routes: { '/': { limiters: [{ name: 'told', limits }] } } })
    apps.push(app)
    for (const status of [200, 429]) {
      const response = await fetch(app.url, { headers: { 'x-account': 'hush-hush' } })
      const sent = JSON.stringify([...response.headers]) + (await response.text())
      expect(response.status).toBe(status)
      expect(sent).not.toMatch(/hush-hush|127\.0\.0\.1|account|"ip"/)
    }
  })
})
