import { createLimiter, redisStore, slidingLog } from '@sluice/core'
import { afterEach, expect, test, vi } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()

const stores: { close(): Promise<void> }[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const store of stores.splice(0)) await store.close()
  await client.flushall()
})

async function banning() {
  const store = redisStore(client, { timeout: 5000, denyCache: false })
  stores.push(store)
  await store.ready()
  const ban = { after: 3, within: '1h', for: ['2h'] } as const
  const limiter = createLimiter({ name: 'strikes', store, limits: [slidingLog({ limit: 2, window: '1h' })], ban })
  /** The outcomes of requests at once, and the number of scripts that decided them. */
  const decide = async (...keys: string[]) => {
    await client.config('RESETSTAT')
    const verdicts = await Promise.all(keys.map((key) => limiter.consume(key)))
    const stats = await client.info('commandstats')
    const runs = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    )
    return { runs, outcomes: verdicts.map(({ allowed, reason }) => (allowed ? 'admitted' : reason)).join(' ') }
  }
  return { limiter, decide }
}

test('admitted requests take one script, and refused ones a second script that counts strikes', async () => {
  const { limiter, decide } = await banning()
  // The clock stands, as these commands may take more than a second on a busy machine.
  vi.useFakeTimers({ toFake: ['performance'] })
  expect(await decide('ann', 'bob')).toEqual({ runs: 1, outcomes: 'admitted admitted' })
  expect(await decide('ann', 'ann', 'bob', 'cem')).toEqual({ runs: 2, outcomes: 'admitted limited admitted admitted' })
  expect((await limiter.peek('ann')).remaining).toBe(0)
  // For a second after that, all requests go directly to the script that counts strikes.
  vi.advanceTimersByTime(999)
  expect(await decide('ann', 'bob', 'cem')).toEqual({ runs: 1, outcomes: 'limited limited admitted' })
  expect((await limiter.peek('cem')).remaining).toBe(0)
  // Its scripts are not counted: once there is a ban, the process looks for others.
  expect((await decide('ann', 'bob')).outcomes).toBe('banned limited')
})

test('a second after the last strike, the smaller script is tried first again', async () => {
  const { decide } = await banning()
  vi.useFakeTimers({ toFake: ['performance'] })
  expect(await decide('ann', 'ann', 'ann')).toEqual({ runs: 2, outcomes: 'admitted admitted limited' })
  vi.advanceTimersByTime(1000)
  expect(await decide('bob', 'bob', 'bob')).toEqual({ runs: 2, outcomes: 'admitted admitted limited' })
})

test('a ban that starts among concurrent requests refuses the later ones', async () => {
  const { decide } = await banning()
  expect((await decide('ann', 'ann', 'ann', 'bob', 'ann', 'ann', 'ann')).outcomes).toBe(
    'admitted admitted limited admitted limited banned banned',
  )
})
