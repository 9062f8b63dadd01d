import { byHeader, redisStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const open = closedAfterEach()

/** A guard, as each process has one. */
async function guardOfProcess() {
  const client = new Redis(server.port)
  const store = redisStore(client)
  open.push(
    () => store.close(),
    () => client.disconnect(),
  )
  await store.ready()
  const ban = { after: 5, within: '1h', for: ['1d'] } as const
  return createGuard({ store, limit: 1, window: '1d', key: byHeader('x-key'), ban })
}

test('requests that another site causes are one strike a minute for their client over all processes', async () => {
  const guards = await Promise.all(Array.from({ length: 3 }, guardOfProcess))
  const send = async (n: number, method: string, site: string) => {
    const guard = guards[n % guards.length] as (typeof guards)[number]
    const headers = { 'x-key': 'viewer', 'sec-fetch-site': site }
    return (await guard(contextOf({ method, headers }))).verdict?.reason
  }
  expect(await send(0, 'GET', 'cross-site')).toBeUndefined()
  const images = await Promise.all(Array.from({ length: 40 }, (_, n) => send(n, 'GET', 'cross-site')))
  expect(new Set(images)).toEqual(new Set(['limited']))
  const reasons: (string | undefined)[] = []
  for (let n = 0; n < 5; n++) reasons.push(await send(n, 'POST', 'cross-site'))
  expect(reasons).toEqual(['limited', 'limited', 'limited', 'banned', 'banned'])
})
