import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, fixedWindow, type Limit, type Limiter, redisStore, slidingWindow } from '@sluice/core'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { freshKey } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { startProxy } from '../../support/proxy.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

const CLIENTS = byEffort({ usual: 50, full: 2000 })
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))
const LIMIT = 20
const ROUND_MS = 20

const { server } = await redisForTests()

const LIMITS: Record<string, readonly Limit<string>[]> = {
  'a fixed window': [fixedWindow({ limit: LIMIT, window: '1h', anchor: 'first-request' })],
  'a sliding window': [slidingWindow({ limit: LIMIT, window: '1h' })],
  'one of two limits': [slidingWindow({ limit: LIMIT, window: '1h' }), slidingWindow({ limit: 1000, window: '1d' })],
}

async function admitted(limiter: Limiter, key: string, times: number): Promise<number> {
  let units = 0
  for (let n = 0; n < times; n++) if ((await limiter.consume(key)).allowed) units++
  return units
}

/** A client, with what it did. */
interface Client {
  readonly key: string
  /** Units since its last reset. */
  used: number
  readonly did: string[]
}

async function actAtRandom(limiter: Limiter, client: Client, upTo: (max: number) => number): Promise<void> {
  const what = upTo(9)
  if (what === 0) {
    await limiter.reset(client.key)
    client.used = 0
    client.did.push('reset')
  } else if (what === 1) {
    await limiter.peek(client.key)
    client.did.push('peek')
  } else if (what <= 4) {
    // Its count is dropped meanwhile, or not yet.
    const rounds = upTo(5)
    await sleep(rounds * ROUND_MS)
    client.did.push(`pause of ${rounds} rounds`)
  } else {
    const units = await admitted(limiter, client.key, 1 + upTo(LIMIT / 2))
    client.used += units
    client.did.push(`${units} admitted`)
  }
}

test.each(Object.entries(LIMITS))(
  `a client that had used more than half of %s gets no unit back by an outage, whatever it did before (seed ${SEED})`,
  async (_, limits) => {
    const below = randomFrom(SEED)
    const upTo = (max: number) => below(max + 1)
    const wire = await startProxy(server.port)
    const connection = new Redis(wire.port, { retryStrategy: () => 20 })
    connection.on('error', () => {})
    const store = redisStore(connection, { timeout: 5000 })
    const limiter = createLimiter({ store, limits, consistency: { syncEvery: ROUND_MS } })
    const clients = Array.from({ length: CLIENTS }, (): Client => ({ key: freshKey(), used: 0, did: [] }))
    await Promise.all(
      clients.map(async (client) => {
        for (let steps = 3 + upTo(7); steps > 0; steps--) await actAtRandom(limiter, client, upTo)
      }),
    )
    await wire.stop()
    await until('Redis is away', async () => (await limiter.consume(freshKey())).kind === 'unavailable')
    for (const { key, used, did } of clients) {
      const most = used > LIMIT / 2 ? LIMIT - used : LIMIT
      expect(await admitted(limiter, key, LIMIT + 1), did.join(', ')).toBeLessThanOrEqual(most)
    }
    await store.close()
    connection.disconnect()
  },
)
