import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, createLimiter, fixedWindow, type RedisStoreOptions, redisStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'

// Tracing attributes each command to the request whose `AsyncLocalStorage` context it is sent in. What a process sends for all
// requests would be attributed to the one that happened to be first, for as long as the process runs.

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Each kind is sent at least as often. */
const LONGEST_MS = 3000

const ofRequest = new AsyncLocalStorage<string>()
const open = closedAfterEach()

/** A store, and the commands that it sends: the request of each, if it is in the context of one. */
async function traced(options: RedisStoreOptions) {
  const client = new Redis(server.port)
  client.on('error', () => {})
  const sent: (string | undefined)[] = []
  // The store may have connections of its own.
  const { sendCommand } = Redis.prototype
  Redis.prototype.sendCommand = function (...args) {
    sent.push(ofRequest.getStore())
    return sendCommand.apply(this, args)
  }
  const store = redisStore(client, options)
  open.push(
    () => store.close(),
    () => client.disconnect(),
    () => Object.assign(Redis.prototype, { sendCommand }),
  )
  await store.ready()
  return { store, sent }
}

/** What a test does in the context of the first request, and repeats in that of others. */
interface Background {
  readonly options?: RedisStoreOptions
  begin(traces: Awaited<ReturnType<typeof traced>>): Promise<{ again?: () => unknown; end?: () => unknown }>
}

const BACKGROUND: Record<string, Background> = {
  'exchanges of relaxed counts': {
    async begin({ store }) {
      const limits = [fixedWindow({ limit: 1_000_000, window: '1h' })]
      const limiter = createLimiter({ name: 'relaxed', store, limits, consistency: { syncEvery: '20ms' } })
      await limiter.consume('ann')
      return { again: () => limiter.consume('ann') }
    },
  },
  'reports of refusals': {
    options: { offenders: true },
    async begin({ store }) {
      const limiter = createLimiter({ name: 'refusals', store, limit: 0, window: '1h' })
      await limiter.consume('ann')
      return { again: () => limiter.consume('ann') }
    },
  },
  'renewals of permits': {
    async begin({ store }) {
      const guard = createGuard({ name: 'permits', store, limits: [concurrency({ limit: 5, ttl: '1s' })] })
      const response = Object.assign(new EventEmitter(), { end() {} })
      await guard(contextOf({ request: {}, ip: '192.0.2.1', response } as never) as never)
      return { end: () => response.emit('close') }
    },
  },
}

test.each(Object.keys(BACKGROUND))('%s are not sent in the context of a request', async (name) => {
  const { options, begin } = BACKGROUND[name] as Background
  const traces = await traced({ timeout: 1000, ...options })
  const { again = () => {}, end } = await ofRequest.run('first', () => begin(traces))
  const { sent } = traces
  sent.length = 0
  for (const began = performance.now(); performance.now() - began < LONGEST_MS; await sleep(50)) {
    await ofRequest.run('another', async () => again())
  }
  await end?.()
  const inBackground = sent.filter((request) => request !== 'another')
  expect(inBackground.length).toBeGreaterThan(0)
  expect(inBackground.filter((request) => request !== undefined)).toEqual([])
})
