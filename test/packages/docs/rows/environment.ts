import { type RedisStoreOptions, redisStore, type Store } from '@sluice/core'
import { Redis } from 'ioredis'
import { vi } from 'vitest'
import { freePort } from '../../../../scripts/lib/ports.js'
import { type RedisServer, startRedis } from '../../../support/redis-server.js'

let server: Promise<RedisServer> | undefined
const ends: (() => unknown)[] = []

/** Stops the clock, so that times in headers are the same in each run. */
export function stopClock(): void {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'hrtime'], now: new Date('2026-01-01T00:00:00Z') })
}

/** For what waits: with the clock stopped, it would wait for ever. */
export const inRealTime = (run: () => unknown) => (): unknown => {
  vi.useRealTimers()
  return run()
}

export const passMs = (ms: number) => vi.advanceTimersByTime(ms)

/** What a row leaves open. */
export function onEnd(end: () => unknown): void {
  ends.push(end)
}

/** Ends what a row has left open, and starts the clock again. */
export async function endRow(): Promise<void> {
  vi.useRealTimers()
  for (const end of ends.splice(0)) await end()
}

export async function stopRedis(): Promise<void> {
  await (await server)?.stop()
}

/** A client of an empty Redis, in real time: what is the same microsecond is one entry to koa-ratelimit. */
export async function redis(): Promise<Redis> {
  vi.useRealTimers()
  return stoppedRedis()
}

/** The same, with a clock that is turned by hand for all but Redis itself. */
export async function stoppedRedis(): Promise<Redis> {
  server ??= startRedis()
  const { port } = await server
  const client = connect(port)
  await client.flushall()
  return client
}

/** While Redis keeps each command that writes waiting. On a connection of its own: the others wait. */
export async function whileHung(run: () => Promise<unknown>): Promise<unknown> {
  await (await server)?.call('CLIENT', 'PAUSE', 60_000, 'WRITE')
  try {
    return await run()
  } finally {
    await (await server)?.call('CLIENT', 'UNPAUSE')
  }
}

/** For a store on a Redis that is away. */
export const AWAY: RedisStoreOptions = { connectTimeout: 50 }

/** A client of a Redis that is away: commands fail at once. */
export async function awayRedis(): Promise<Redis> {
  vi.useRealTimers()
  return connect(await freePort())
}

function connect(port: number): Redis {
  const client = new Redis(port, { maxRetriesPerRequest: 0, enableOfflineQueue: true })
  client.on('error', () => {})
  onEnd(() => client.disconnect())
  return client
}

/** Decides by the clock of Redis, which nothing stops. */
export function storeOn(client: Redis, options: RedisStoreOptions = { timeout: 5000, connectTimeout: 5000 }): Store {
  vi.useRealTimers()
  const store = redisStore(client, options)
  onEnd(() => store.close())
  return store
}
