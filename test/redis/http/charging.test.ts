import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { everyone, redisStore, type Store } from '@sluice/core'
import { expect, test } from 'vitest'
import { type Answering, BODY_APPS, type BodyApp } from '../../http/support/body-apps.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const { client } = await redisForTests()

/** One app per framework, each with its own store on one Redis, as separate processes have. */
async function startAll(name: string, answer: Answering) {
  const apps: (BodyApp & { readonly url: string; readonly store: Store })[] = []
  for (const factory of Object.values(BODY_APPS)) {
    const store = redisStore(client, { timeout: 5000 })
    const app = await factory(
      { name, store, limit: 2, window: '15m', key: everyone(), count: { only: (status) => status >= 400 } },
      answer,
    )
    app.server.listen(0, '127.0.0.1')
    await once(app.server, 'listening')
    const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
    apps.push({ ...app, url, store })
  }
  return {
    apps,
    close: async () => {
      for (const { server, store } of apps) {
        server.close()
        server.closeAllConnections()
        await store.close()
      }
    },
  }
}

const answering =
  (status: number): Answering =>
  async () => {
    await new Promise((resolve) => setTimeout(resolve, 40))
    return { status, text: '' }
  }

test('concurrent successful requests to four processes pass a shared limit of 2 failures', async () => {
  const { apps, close } = await startAll('good', answering(200))
  const statuses = await Promise.all(apps.map(async ({ url }) => (await fetch(url)).status))
  expect(statuses).toEqual([200, 200, 200, 200])
  await close()
})

test('concurrent failing requests to four processes reach the handler no more often than the shared limit', async () => {
  const { apps, close } = await startAll('bad', answering(401))
  const sent = [...apps, ...apps, ...apps].map(async ({ url }) => (await fetch(url)).status)
  const statuses = await Promise.all(sent)
  expect(statuses.sort()).toEqual([401, 401, ...new Array(10).fill(429)])
  expect(apps.flatMap(({ ran }) => ran)).toHaveLength(2)
  await close()
})
