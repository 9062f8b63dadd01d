import { redisStore, storeList } from '@sluice/core'
import { afterAll, describe, expect, test } from 'vitest'
import { type RunningApp, run } from '../../http/support/app.js'
import { FRAMEWORKS } from '../../http/support/frameworks.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const { client } = await redisForTests()
const open: { close(): Promise<void> }[] = []
afterAll(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

const storeOf = () => {
  const store = redisStore(client, { timeout: 5000, prefix: 'lists-over-http:' })
  open.push(store)
  return store
}

describe.each(Object.entries(FRAMEWORKS))('%s', (framework, factory) => {
  test('an app that has just started applies the whole list of its store', async () => {
    const list = storeOf().list(`abusers-${framework.replaceAll(/\W/g, '')}`)
    const users = Array.from({ length: 1000 }, (_, n) => ({ user: `abuser ${n}` }))
    await Promise.all([...users, { ip: '127.0.0.1' }].map((identity) => list.add(identity)))
    const options = { name: 'api', store: storeOf(), limit: 10, window: '1m', deny: storeList(list.name) } as const
    const app: RunningApp = await run(factory, { routes: { '/': { limiters: [options] } } })
    open.push(app)
    const statuses = await Promise.all(Array.from({ length: 5 }, async () => (await fetch(app.url)).status))
    expect(statuses).toEqual([403, 403, 403, 403, 403])
    await list.remove({ ip: '127.0.0.1' })
  })
})
