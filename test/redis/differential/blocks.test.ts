import { createLimiter, keyed, type Limiter, memoryStore, redisStore, slidingLog } from '@sluice/core'
import { expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { Clock } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const STEPS = Number(process.env.SLUICE_STEPS ?? byEffort({ usual: 1500, full: 60_000 }))
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))

const { client } = await redisForTests()

interface Client {
  readonly ip: string
  readonly account: string
}

/** The address as `byIp()` counts it, without a request. */
const byAddress = Object.assign(({ ip }: Client) => ip, { kind: 'ip' })
const byAccount = keyed('account', ({ account }: Client) => account)

const ADDRESSES = ['198.51.100.7', '198.51.100.8', '2001:db8:1:2::/64']
const NETWORKS = ['198.51.100.0/24', '198.51.0.0/16', '2001:db8::/32']
const ACCOUNTS = ['ann', 'bob']

test('memory and Redis agree at every step on blocks and bans of policies, stores and networks', async () => {
  const clock = new Clock()
  const random = randomFrom(SEED)
  const oneOf = <T>(all: readonly T[]) => all[random(all.length)] as T
  const prefix = `blocks-${SEED}:`
  const stores = [
    memoryStore({ clock: clock.read }),
    insist(redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false, prefix })),
  ] as const
  const limit = (key: typeof byAddress | typeof byAccount) => slidingLog<Client>({ limit: 1, window: '3s', key })
  const ladder = { after: 3, within: '30s', for: ['2s', '5s', '20s'], forgetAfter: '1m', private: true } as const
  const limitersOf = (store: (typeof stores)[number]): Limiter<Client>[] => [
    createLimiter({ name: 'store', store, limits: [limit(byAddress)], ban: { ...ladder, scope: 'store' } }),
    createLimiter({ name: 'own', store, limits: [limit(byAddress)], ban: ladder }),
    createLimiter({
      name: 'both',
      store,
      limits: [limit(byAddress), limit(byAccount)],
      ban: { ...ladder, by: 'account', scope: 'store' },
    }),
    createLimiter({ name: 'without', store, limits: [limit(byAddress), limit(byAccount)] }),
  ]
  const limiters = stores.map(limitersOf)

  for (let step = 0; step < STEPS; step++) {
    if (random(2) === 0) clock.now += random(random(10) === 0 ? 20_000 : 900)
    const at = random(4)
    const client = { ip: oneOf(ADDRESSES), account: oneOf(ACCOUNTS) }
    const isAccount = at >= 2 && random(2) === 0
    const identity: Record<string, string> = isAccount
      ? { account: client.account }
      : { ip: random(3) === 0 ? oneOf(NETWORKS) : client.ip }
    const struck: Record<string, string> = at === 2 ? { account: client.account } : { ip: client.ip }
    const block = { for: 1 + random(random(4) === 0 ? 30_000 : 3_000), reason: `step ${step}` }
    const policy = random(2) === 0 ? { policy: oneOf(['store', 'own', 'both', 'without']) } : {}
    const weight = 1 + random(2)
    const what = random(100)
    const results: string[] = []
    for (const [i, store] of stores.entries()) {
      const limiter = limiters[i]?.[at] as Limiter<Client>
      const result = async (): Promise<unknown> => {
        if (what < 5) return limiter.block(identity, block)
        if (what < 9) return store.blocks.add(identity, { ...block, ...policy })
        if (what < 11) return limiter.unblock(identity)
        if (what < 13) return store.blocks.remove(identity, policy)
        if (what < 14) return limiter.reset(client)
        if (what < 25 && at < 3) return limiter.strike(struck, { weight, reason: `${step}` })
        if (what < 30) return limiter.peek(client)
        return limiter.consume(client)
      }
      results.push(JSON.stringify(await result()) ?? '')
    }
    expect(results[1], `seed ${SEED}, step ${step}, at ${clock.now}, ${what}`).toBe(results[0])
  }
  for (const store of stores) await store.close()
})
