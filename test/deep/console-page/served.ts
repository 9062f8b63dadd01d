import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import { byUser, createLimiter, redisStore, type Store, storeList } from '@sluice/core'
import { policies, RedisDocuments } from '@sluice/policies'
import { Redis } from 'ioredis'
import { APPS, portOf, type StartApp } from '../../console/support.js'
import type { RedisServer } from '../../support/redis-server.js'

export interface ServedPage {
  /** Where the page is. */
  readonly url: string
  readonly server: Server
  close(): Promise<void>
}

const textOf = (limit: number) =>
  `{ version: 1, policies: { api: { key: user, limits: [{ limit: ${limit}, window: 1h }] } } }`

/** The operator is in a cookie, as a browser sends it by itself. */
function operatorIn({ headers }: IncomingMessage): unknown {
  const [, name] = /\bwho=(\w+)/.exec(headers.cookie ?? '') ?? []
  if (name === 'ann') return { name: 'ann', may: 'act' }
  return name === 'bob' && { name: 'bob', may: 'read' }
}

/** A console of an operator who may act, in Koa. */
export async function servedStore(store: Store, options: object): Promise<ServedPage> {
  const server = await (APPS.Koa as StartApp)({ store, authorize: operatorIn, ...options } as never)
  return {
    url: `http://127.0.0.1:${portOf(server)}/sluice`,
    server,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * A console on Redis with something to see: a client that is refused, a block, a list, a document with two versions.
 *
 * @param clients the values of clients that are refused and blocked
 */
export async function servedPage(
  start: StartApp,
  redis: RedisServer,
  clients: readonly string[] = ['ann'],
): Promise<ServedPage> {
  const open: (() => unknown)[] = []
  const clientOf = () => {
    const client = new Redis(redis.port)
    // Some tests stop it.
    client.on('error', () => {})
    open.push(() => client.disconnect())
    return client
  }
  const prefix = `${randomUUID()}:`
  const client = clientOf()
  const store = redisStore(client, { prefix, timeout: 15_000, offenders: true, deny: storeList('abusers') })
  await store.ready()
  const documents = new RedisDocuments((command, ...args) => client.call(command, ...args), 'default', prefix)
  for (const [i, limit] of [5, 50].entries()) await documents.save(textOf(limit), i, 'carol')
  const document = await policies.from({
    redis: client,
    save: clientOf(),
    prefix,
    keys: { user: (request: { user?: string }) => request.user },
  })
  const mail = createLimiter({ name: 'mail', store, limit: 2, window: '1h', key: byUser((user: string) => user) })
  const server = await start({
    store,
    limiters: [mail as never],
    policies: { policies: document as never, name: 'api' },
    lists: ['partners'],
    traffic: true,
    authorize: operatorIn,
  })
  for (const user of clients) {
    for (let n = 0; n < 4; n++) await mail.consume(user)
    const reason = `because of ${user.slice(0, 150)}`
    const change = { by: 'carol', action: 'block', policy: 'mail', identity: { user }, after: { for: '1h', reason } }
    await store.changes.record(change, () => store.blocks.add({ user }, { policy: 'mail', for: '1h', reason }))
    await mail.consume(user)
    await store.list('partners').add({ user }, { reason: user.slice(0, 150) })
  }
  open.push(
    () => store.close(),
    () => document.close(),
    () => new Promise<void>((resolve) => server.close(() => resolve())),
    () => server.closeAllConnections(),
  )
  return {
    url: `http://127.0.0.1:${portOf(server)}/sluice`,
    server,
    async close() {
      for (const each of open.splice(0).reverse()) await each()
    },
  }
}
