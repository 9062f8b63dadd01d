import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore, type Store } from '@sluice/core'
import { afterAll } from 'vitest'
import { singleClients } from '../support/clients.js'
import type { RedisServer } from '../support/redis-server.js'
import { type OpenStore, openStore } from '../support/stores.js'

/** Listens on a free port until the tests of the file are done. */
export async function listen(listener: RequestListener | Server): Promise<string> {
  const server = typeof listener === 'function' ? createServer(listener) : listener
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  afterAll(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The statuses of requests, one after the other. */
export async function statuses(url: string, count: number, headers: Record<string, string> = {}): Promise<number[]> {
  const seen: number[] = []
  for (let n = 0; n < count; n++) seen.push(await statusOf(url, headers))
  return seen
}

export async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers })
  await response.arrayBuffer()
  return response.status
}

/** A new store for each call: in memory, or on a Redis that is shared by all calls. */
export type NewStore = () => Promise<Store>

export const inMemory: NewStore = async () => memoryStore()

/** Each call is another process to the others: a client and a store of its own. They end with the tests of the file. */
export function onRedis(server: () => RedisServer): NewStore {
  const open: OpenStore[] = []
  afterAll(async () => {
    await Promise.all(open.map((store) => store.close()))
  })
  return async () => {
    const opened = await openStore(singleClients['ioredis 6'](server().port))
    open.push(opened)
    return opened.store
  }
}

/** One client and store for all calls, where a test needs no second process. */
export function oneOnRedis(server: () => RedisServer): NewStore {
  const newStore = onRedis(server)
  let store: Promise<Store> | undefined
  return () => (store ??= newStore())
}

/** The result of a refusal of rate-limiter-flexible, which rejects with it. */
export const refused = (call: Promise<unknown>) =>
  call.then(
    () => {
      throw new Error('was admitted')
    },
    (refusal) => {
      if (refusal instanceof Error) throw refusal
      return refusal
    },
  )

let names = 0
/** A name that no other test has. */
export const freshName = (): string => `bridge-${names++}`
