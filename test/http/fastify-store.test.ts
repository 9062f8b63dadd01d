import { rateLimit as limit, memoryStore, type Store } from '@sluice/fastify'
import Fastify from 'fastify'
import { expect, test } from 'vitest'

/** A store in memory that becomes ready with a promise. */
function storeThatIs(ready: Promise<void>): Store {
  const store = memoryStore()
  return {
    decide: store.decide.bind(store),
    reset: store.reset.bind(store),
    close: store.close.bind(store),
    ready: async () => {
      await ready
      return { state: 'available', cause: undefined }
    },
  }
}

test('the plugin is registered once its store is ready', async () => {
  let isReady = false
  const ready = new Promise<void>((resolve) =>
    setTimeout(() => {
      isReady = true
      resolve()
    }, 50),
  )
  const app = Fastify()
  await app.register(limit, { limit: 5, window: '1m', store: storeThatIs(ready) })
  expect(isReady).toBe(true)
  await app.close()
})

test('a store that is never ready does not keep the server from starting', async () => {
  const never = new Promise<void>(() => {})
  const app = Fastify({ pluginTimeout: 1500 })
  await app.register(limit, { limit: 5, window: '1m', store: storeThatIs(never) })
  app.get('/', async () => 'here')
  expect((await app.inject('/')).statusCode).toBe(200)
  await app.close()
})

test('with waitForStore: false the plugin does not wait', async () => {
  const never = new Promise<void>(() => {})
  const app = Fastify({ pluginTimeout: 0 })
  await app.register(limit, { limit: 5, window: '1m', store: storeThatIs(never), waitForStore: false })
  expect((await app.inject('/')).statusCode).toBe(404)
  await app.close()
})
