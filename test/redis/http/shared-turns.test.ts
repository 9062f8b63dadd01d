import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createLimiter, everyone, queue, type RedisStore, redisStore } from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { type RunningApp, run } from '../../http/support/app.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

const { client } = await redisForTests()

/** Two apps on stores of their own, as two processes are. Each request says its priority. */
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
      // No pause of this process is that long.
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

  /** Until every process that has waiters has said so. */
  const whenTold = (name: string, entries: number) =>
    until('all have said who waits in them', async () => {
      const keys = await client.keys(`*:${name}:*:waiting`)
      const [key] = keys
      return key !== undefined && (await client.strlen(key)) === 34 * entries
    })

  test('the higher priority is served first, whichever process it waits in', async () => {
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
    await whenTold(name, 5)
    await go()
    expect(served).toEqual(['2', '2', '1', '0', '0', '0'])
  })

  test('who waits for long rises above a higher priority, in whichever process that waits', async () => {
    const { name, send, go, served } = await start('100ms')
    await send(0, 0)
    await sleep(500)
    await send(1, 1)
    await whenTold(name, 2)
    await go()
    expect(served).toEqual(['0', '1'])
  })
})
