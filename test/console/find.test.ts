import { randomUUID } from 'node:crypto'
import {
  byHeader,
  byIp,
  byUser,
  compose,
  createLimiter,
  keyed,
  memoryStore,
  redisStore,
  type Store,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { contextOf } from '../support/context.js'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { ask, asOperator, startConsole, withBody } from './support.js'

// One box finds a client: what a text may mean.

let redis: RedisServer
beforeAll(async () => {
  ;({ server: redis } = await redisForTests())
})
const open = closedAfterEach()

async function served(store: Store, limiters: readonly object[] = []) {
  const port = await startConsole({ store, limiters: limiters as never }, open)
  const find = async (text: string) =>
    (await ask(port, '/sluice/api/find', { headers: withBody(port), body: { text } })).json.candidates
  const suggestions = async (text: string) =>
    (await ask(port, '/sluice/api/suggestions', { headers: withBody(port), body: { text } })).json.suggestions
  const kinds = async () => (await ask(port, '/sluice/api/kinds', { headers: asOperator(port) })).json.kinds
  return { find, suggestions, kinds }
}

interface App {
  readonly user: string
  readonly account: string
}
const limitsOf = (store: Store) => [
  createGuard<App>({ name: 'web', store, limit: 2, window: '1h', key: byIp() }),
  createGuard<App>({ name: 'keys', store, limit: 2, window: '1h', key: byHeader('x-api-key') }),
  createGuard<App>({ name: 'users', store, limit: 2, window: '1h', key: byUser((app: App) => app.user) }),
  createGuard<App>({ name: 'logins', store, limit: 2, window: '1h', key: keyed('account', (app: App) => app.account) }),
  createGuard<App>({
    name: 'both',
    store,
    limit: 2,
    window: '1h',
    key: compose(
      byIp(),
      byUser((app: App) => app.user),
    ),
  }),
]

test('an address, a network, a key and an account are recognised, those that are known first', async () => {
  const store = memoryStore({ offenders: true })
  const limiters = limitsOf(store)
  const request = { user: 'ann', account: 'ann@example.com' }
  const headers: Record<string, string> = { 'x-api-key': 'k-4f1c' }
  for (const limiter of limiters) {
    await limiter(contextOf({ request, ip: '192.0.2.7', headers }) as never)
  }
  const { find } = await served(store, limiters)
  expect(await find(' 192.0.2.7 ')).toEqual([{ kind: 'ip', value: '192.0.2.7', isKnown: true }])
  expect(await find('198.18.4.0/24')).toEqual([{ kind: 'ip', value: '198.18.4.0/24', isKnown: false }])
  expect((await find('k-4f1c'))[0]).toEqual({ kind: 'header:x-api-key', value: 'k-4f1c', isKnown: true })
  expect((await find('ann@example.com'))[0]).toEqual({ kind: 'account', value: 'ann@example.com', isKnown: true })
  const ofBob: { kind: string; isKnown: boolean }[] = await find('bob')
  expect(ofBob.map(({ kind, isKnown }) => `${kind} ${isKnown}`).sort()).toEqual([
    'account false',
    'header:x-api-key false',
    'user false',
  ])
  // The kind may be named, and a composed one has a word for each part.
  expect(await find('user=bob')).toEqual([{ kind: 'user', value: 'bob', isKnown: false }])
  expect(await find('account bob')).toEqual([{ kind: 'account', value: 'bob', isKnown: false }])
  expect((await find('192.0.2.7 ann'))[0]).toEqual({ kind: 'ip+user', value: ['192.0.2.7', 'ann'], isKnown: true })
})

test('an address that a limiter counts as a name is found as that name, too', async () => {
  const store = memoryStore()
  const mail = createLimiter({ name: 'mail', store, limit: 2, window: '1h' })
  await mail.consume('192.0.2.7')
  const { find } = await served(store, [mail, ...limitsOf(store)])
  expect(await find('192.0.2.7')).toEqual([
    { kind: 'key', value: '192.0.2.7', isKnown: true },
    { kind: 'ip', value: '192.0.2.7', isKnown: false },
  ])
})

test('clients that are refused, blocked or among the offenders are suggested', async () => {
  const store = memoryStore({ offenders: true })
  const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h' })
  const { suggestions } = await served(store, [mail])
  for (let i = 0; i < 4; i++) await mail.consume('ann')
  for (let i = 0; i < 2; i++) await mail.consume('annabel')
  await store.blocks.add({ ip: '198.18.4.0/24' }, { for: '1h' })
  expect(await suggestions('')).toEqual([
    { kind: 'key', value: 'ann', refusals: 3, isBlocked: false },
    { kind: 'key', value: 'annabel', refusals: 1, isBlocked: false },
    { kind: 'ip', value: '198.18.4.0/24', refusals: 0, isBlocked: true },
  ])
  expect(await suggestions('ANNA')).toMatchObject([{ value: 'annabel' }])
  expect(await suggestions('198')).toMatchObject([{ value: '198.18.4.0/24' }])
  expect(await suggestions('nobody')).toEqual([])
})

test('a console without limiters and documents knows the kinds that Redis has', async () => {
  const prefix = `${randomUUID()}:`
  const storeOf = () => {
    const client = new Redis(redis.port)
    const store = redisStore(client, { prefix, timeout: 10_000 })
    open.push(
      () => client.quit(),
      () => store.close(),
    )
    return store
  }
  const elsewhere = storeOf()
  for (const limiter of limitsOf(elsewhere)) {
    const request = { user: 'ann', account: 'ann@example.com' }
    const headers: Record<string, string> = { 'x-api-key': 'k-4f1c' }
    await limiter(contextOf({ request, ip: '192.0.2.7', headers }) as never)
  }
  const { kinds, find } = await served(storeOf())
  expect(await kinds()).toEqual(['ip', 'account', 'header:x-api-key', 'ip+user', 'user'])
  expect((await find('ann@example.com')).map(({ kind }: { kind: string }) => kind)).toContain('account')
})
