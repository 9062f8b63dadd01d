import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createLimiter, everyone, queue, type RedisStore, redisStore } from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { type RunningApp, run } from '../../http/support/app.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

const { client } = await redisForTests()

/** Two apps on separate stores, as in two processes. Each request states its priority in a header. */
describe.each(Object.entries(FRAMEWORKS))('turns across processes: %s', (_name, factory) => {
  const running: RunningApp[] = []
  const stores: RedisStore[] = []
  afterEach(async () => {
    for (const app of running.splice(0)) await app.close()
    for (const store of stores.splice(0)) await store.close()
  })

  const newStore = () => {
    const store = redisStore(client, { timeout: 5000 })
    stores.push(store)
    return store
  }

  const start = async (ageEvery: '1h' | '100ms' = '1h') => {
    const name = `turns-${randomUUID()}`
    const served: string[] = []
    let joined = 0
    const policy = (store: RedisStore) => ({
      name,
      store,
      // Longer than any pause of this process.
      sharedTurns: { ttl: '1m' as const },
      limits: [concurrency({ limit: 1, ttl: '1h', key: everyone() })],
    })
    const limiterOf = (store: RedisStore) => ({
      ...policy(store),
      respond: queue<unknown>({
        maxWait: '1m',
        ageEvery,
        priority: (_request, context) => {
          joined++
          return Number(context.header('x-priority'))
        },
      }),
    })
    const urls: string[] = []
    for (let i = 0; i < 2; i++) {
      const app = await run(factory, { routes: { '/': { limiters: [limiterOf(newStore())] } } })
      running.push(app)
      urls.push(app.url)
    }
    const holder = createLimiter(policy(newStore()))
    const taken = await holder.consume('all')
    expect(taken.allowed).toBe(true)
    const responses: Promise<unknown>[] = []
    const send = async (app: number, priority: number) => {
      const before = joined
      const response = fetch(urls[app] as string, { headers: { 'x-priority': String(priority) } })
      responses.push(
        response.then(async (answer) => {
          await answer.text()
          served.push(answer.status === 200 ? `${priority}` : `${priority}: ${answer.status}`)
        }),
      )
      await until(`the request of priority ${priority} waits`, () => joined > before)
    }
    const go = async () => {
      await holder.release(taken)
      await Promise.all(responses)
    }
    return { name, send, go, served }
  }

  /** Waits until every process has reported its waiters. */
  const untilReported = (name: string, entries: number) =>
    until('all processes have reported their waiters', async () => {
      const keys = await client.keys(`*:${name}:*:waiting`)
      const [key] = keys
      return key !== undefined && (await client.strlen(key)) === 34 * entries
    })

  test('the waiter of the highest priority is served first, in whichever process it waits', async () => {
    const { name, send, go, served } = await start()
    for (const [app, priority] of [
      [0, 0],
      [0, 0],
      [1, 1],
      [0, 2],
      [1, 0],
      [1, 2],
    ] as const)
      await send(app, priority)
    await untilReported(name, 5)
    await go()
    expect(served).toEqual(['2', '2', '1', '0', '0', '0'])
  })

  test('a waiter that has aged is served before a higher priority in another process', async () => {
    const { name, send, go, served } = await start('100ms')
    await send(0, 0)
    await sleep(500)
    await send(1, 1)
    await untilReported(name, 2)
    await go()
    expect(served).toEqual(['0', '1'])
  })
})
