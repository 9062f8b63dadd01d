// Release: runs clusters.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLimiter, type RedisClient, type RedisStore, redisStore } from '@sluice/core'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ensureBuiltCore } from '../../support/built-core.js'
import { clusterClients, type Owned, singleClients } from '../../support/clients.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const NAME = 'ann.vance@example.org'
/** Longer than two looks at the index. */
const LOOKS_MS = 2500
const FOR_EVER = { for: Number.POSITIVE_INFINITY, reason: 'fraud' }

let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  ensureBuiltCore()
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
  return () => Promise.all([server.stop(), cluster.stop()])
})

describe.each(['one server', 'a cluster'])('on %s', (kind) => {
  const servers = () => (kind === 'one server' ? [server] : cluster.masters)
  let owned: Owned<RedisClient>
  let store: RedisStore
  let other: ChildProcess

  beforeEach(async () => {
    owned =
      kind === 'one server' ? singleClients['ioredis 6'](server.port) : clusterClients['ioredis 6 Cluster'](cluster)
    await owned.ready
    store = redisStore(owned.client, { timeout: 15_000, warnings: { SLUICE_BLOCKS_RESTORED: false } })
    await store.ready()
    const env = {
      ...process.env,
      REDIS_PORTS: servers()
        .map(({ port }) => port)
        .join(),
    }
    other = fork(fileURLToPath(new URL('knower.js', import.meta.url)), { env, execArgv: [] })
    await once(other, 'message')
  })
  afterEach(async () => {
    other.kill('SIGCONT')
    other.disconnect()
    await once(other, 'exit')
    await store.close()
    owned.close()
    await Promise.all(servers().map((each) => each.flush()))
  })

  const knownThere = async (): Promise<{ known: number; listed: number }> => {
    other.send('report')
    return (await once(other, 'message'))[0]
  }

  /** Creates blocks, a ban, an ended block and a list entry, until the other process knows them. */
  async function blockEverywhere(): Promise<void> {
    const key = { key: NAME }
    await store.blocks.add(key, FOR_EVER)
    await store.blocks.add(key, { ...FOR_EVER, policy: 'api' })
    await store.blocks.add(key, { ...FOR_EVER, policy: 'ended' })
    await store.blocks.remove(key, { policy: 'ended' })
    await store.blocks.add({ key: 'somebody' }, FOR_EVER)
    await store.list('deny').add({ ip: '203.0.113.77' })
    const ban = { after: 1, within: '1h', for: ['1d'] } as const
    const banning = createLimiter({ name: 'banning', store, limit: 1, window: '1h', ban })
    await banning.strike('guesser')
    await until('the other process knows them', async () => {
      const { known, listed } = await knownThere()
      return known === 4 && listed === 1
    })
  }

  async function forget(): Promise<void> {
    await store.forget({ key: NAME })
    await store.forget({ key: 'guesser' })
    await store.forget({ ip: '203.0.113.77' })
  }

  async function expectNoName(): Promise<void> {
    const found = (await Promise.all(servers().map(everything))).join('\n')
    for (const name of [NAME, 'guesser', '203.0.113.77']) expect(found).not.toContain(name)
    expect(found).toContain('somebody')
  }

  test('forget leaves the name of an identity in no key and no value, and other processes drop it', async () => {
    await blockEverywhere()
    await forget()
    await expectNoName()
    await until('the other process has dropped them', async () => {
      const { known, listed } = await knownThere()
      return known === 1 && listed === 0
    })
    // After the flush, the processes restore what they know.
    await Promise.all(servers().map((each) => each.flush()))
    await until('the remaining block is restored', async () => (await store.blocks.list()).entries.length === 1)
    await sleep(LOOKS_MS)
    await expectNoName()
    const limiter = createLimiter({ name: 'api', store, limit: 5, window: '1h' })
    expect((await limiter.consume('ann')).allowed).toBe(true)
    await limiter.block(NAME, { for: '1h' })
    await sleep(LOOKS_MS)
    expect((await limiter.consume(NAME)).reason).toBe('blocked')
    expect((await knownThere()).known).toBe(2)
  })

  test.each(['', ' and a flush'])(
    'a process that is paused during forget%s restores the identity for one look at most',
    async (also) => {
      await blockEverywhere()
      other.kill('SIGSTOP')
      await forget()
      await expectNoName()
      if (also) await Promise.all(servers().map((each) => each.flush()))
      await sleep(LOOKS_MS)
      other.kill('SIGCONT')
      await until('the other process has dropped them', async () => (await knownThere()).known === 1)
      await sleep(LOOKS_MS)
      await expectNoName()
      expect(await knownThere()).toEqual({ known: 1, listed: 0 })
      expect((await createLimiter({ name: 'api', store, limit: 5, window: '1h' }).consume(NAME)).allowed).toBe(true)
    },
  )

  test('an import of an earlier export does not restore a forgotten identity', async () => {
    await blockEverywhere()
    const exported = []
    for await (const entry of store.blocks.export()) exported.push(entry)
    expect(exported).toHaveLength(4)
    await forget()
    const late = redisStore(owned.client, { timeout: 15_000 })
    await late.blocks.import(exported)
    await late.close()
    await expectNoName()
  })
})

/** The text of every key and value of a server. */
async function everything(from: RedisServer): Promise<string> {
  const parts: unknown[] = []
  for (const key of (await from.call('KEYS', '*')) as string[]) {
    const type = await from.call('TYPE', key)
    parts.push(key)
    if (type === 'string') parts.push(await from.call('GET', key))
    else if (type === 'hash') parts.push(await from.call('HGETALL', key))
    else if (type === 'zset') parts.push(await from.call('ZRANGE', key, 0, -1))
    else throw new Error(`a key of type ${type}`)
  }
  return parts.map(String).join('\n')
}
