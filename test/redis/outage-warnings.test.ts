import { createLimiter, type RedisClient, type RedisStoreOptions, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createClient } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { namesOf, type Owned, oneOfEach, ownedIoredis, ownedNodeRedis, singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { OutageWarnings } from '../support/inside.js'
import { warningsDuring } from '../support/process-events.js'
import { HOST, type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const open = closedAfterEach()

async function server(options = {}): Promise<RedisServer> {
  const started = await startRedis(options)
  open.push(() => started.stop())
  return started
}

function limiterOn({ client, close }: Owned<RedisClient>, options: RedisStoreOptions = {}) {
  open.push(close)
  const store = redisStore(client, { timeout: 500, denyCache: false, ...options })
  open.push(() => store.close())
  return {
    store,
    limiter: createLimiter({ name: 'warned', store, limits: [slidingLog({ limit: 1000, window: '1h' })] }),
  }
}
type Warned = ReturnType<typeof limiterOn>

/** Decides until the store is away, and then for some time, in which some probes fail. */
async function outageOf({ store, limiter }: Warned): Promise<void> {
  await until('the store is away', async () => {
    await limiter.consume('client-key')
    return store.state === 'unavailable'
  })
  const end = performance.now() + 320
  while (performance.now() < end) {
    await Promise.all(Array.from({ length: 20 }, () => limiter.consume('client-key')))
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const back = ({ limiter }: Warned) => until('Redis decides', () => decided(limiter.consume('client-key')))

/** Every cause of an outage that a reply of Redis names, and the warning about it. */
const REPLIES: Record<string, { begin(redis: RedisServer): Promise<unknown>; message: RegExp }> = {
  'denies a command': {
    begin: (redis) => redis.call('ACL', 'SETUSER', 'default', '-setrange'),
    message: /NOPERM.* Grant the user what SECURITY\.md lists/,
  },
  'denies a key': {
    begin: (redis) => redis.call('ACL', 'SETUSER', 'default', 'resetkeys', '~other:*'),
    message: /NOPERM.* Grant the user what SECURITY\.md lists/,
  },
  'is full': {
    begin: (redis) => redis.call('CONFIG', 'SET', 'maxmemory', 1),
    message: /OOM.* Raise maxmemory/,
  },
  'is a replica': {
    begin: (redis) => redis.call('REPLICAOF', HOST, 1),
    message: /READONLY.* Connect to the master/,
  },
  'misses replicas': {
    begin: (redis) => redis.call('CONFIG', 'SET', 'min-replicas-to-write', 1),
    message: /NOREPLICAS/,
  },
}

describe.each(['ioredis 6', 'redis 6'] as const)('over %s', (kind) => {
  test.each(Object.entries(REPLIES))(
    'one warning says that Redis %s, and what to do',
    async (_, { begin, message }) => {
      const redis = await server()
      // A reply has to name the cause, also where the machine pauses.
      const warned = limiterOn(singleClients[kind](redis.port), { timeout: 15_000 })
      await back(warned)
      const all = await warningsDuring(async () => {
        await begin(redis)
        await outageOf(warned)
      })
      // The look at the index of blocks, once a second, may meet the same cause first.
      const warnings = all.filter((warning) => !('code' in warning) || warning.code !== 'SLUICE_BLOCKS_DENIED')
      expect(warnings).toEqual([
        expect.objectContaining({ code: 'SLUICE_STORE_UNAVAILABLE', message: expect.stringMatching(message) }),
      ])
      expect(warnings[0]?.message).toContain(`:${redis.port}`)
      expect(warnings[0]?.message).not.toContain('client-key')
    },
  )
})

test.each(oneOfEach(singleClients))(
  'errors while a store leaves its connection to a replica are no further cause, over %s',
  async (kind) => {
    const redis = await server()
    const warned = limiterOn(singleClients[kind](redis.port))
    await back(warned)
    const causes: string[] = []
    warned.store.on('store', ({ cause }) => cause && causes.push(cause.message))
    const warnings = await warningsDuring(async () => {
      await redis.call('REPLICAOF', HOST, 1)
      // One after the other, so that none is pending when the first reply names the cause.
      while (warned.store.state === 'available') await warned.limiter.consume('client-key')
      await outageOf(warned)
    })
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/READONLY.* Connect to the master/)])
    expect(causes).toEqual([expect.stringContaining('READONLY')])
  },
)

test.each(oneOfEach(singleClients))('the warning of a Redis that hangs says what to check, over %s', async (kind) => {
  const redis = await server()
  // Three decisions are late before the connection counts as dead.
  const warned = limiterOn(singleClients[kind](redis.port), { timeout: 200 })
  await back(warned)
  const warnings = await warningsDuring(async () => {
    redis.kill('SIGSTOP')
    await outageOf(warned)
  })
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(/does not answer in time.* Check that Redis runs/),
  ])
})

/** Clients with a user name and a password. */
const credentialed = {
  'ioredis 6': (port: number, username: string, password: string) =>
    ownedIoredis(new Redis<'legacy'>({ host: HOST, port, username, password })),
  'ioredis 5': (port: number, username: string, password: string) =>
    ownedIoredis(new Redis5({ host: HOST, port, username, password })),
  'redis 6': (port: number, username: string, password: string) =>
    ownedNodeRedis(createClient({ socket: { host: HOST, port }, username, password })),
  'redis 5': (port: number, username: string, password: string) =>
    ownedNodeRedis(createClient5({ socket: { host: HOST, port }, username, password })),
}

describe.each(namesOf(credentialed))('over %s', (kind) => {
  test('a warning names wrong credentials as the cause, and never shows them', async () => {
    const redis = await server()
    await redis.call('ACL', 'SETUSER', 'app', 'on', '>right-password', '~*', '+@all')
    const warnings = await warningsDuring(() =>
      outageOf(limiterOn(credentialed[kind](redis.port, 'app-user', 'wrong-password'))),
    )
    const messages = warnings.map(({ message }) => message)
    expect(messages).toEqual([expect.stringMatching(/WRONGPASS.* Check the credentials/)])
    expect(messages.join()).not.toMatch(/wrong-password|app-user/)
  })

  test('a warning names a missing password as the cause', async () => {
    const redis = await server()
    await redis.call('CONFIG', 'SET', 'requirepass', 'secret')
    const warnings = await warningsDuring(() => outageOf(limiterOn(singleClients[kind](redis.port))))
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/NOAUTH.* Give the client a password/),
    ])
  })

  test('one warning names an address without a server, however many decisions are local', async () => {
    const port = await freePort()
    const warnings = await warningsDuring(() => outageOf(limiterOn(singleClients[kind](port))))
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/ECONNREFUSED.* Check that Redis is started/),
    ])
  })

  test('a store warns of an absent Redis, and again when that starts without the needed permissions', async () => {
    const port = await freePort()
    const warned = limiterOn(singleClients[kind](port))
    let received = 0
    const count = () => void received++
    process.on('warning', count)
    open.push(() => process.off('warning', count))
    const warnings = await warningsDuring(async () => {
      await outageOf(warned)
      await server({ port, settings: ['user default on nopass ~* &* +@all -evalsha'] })
      await until('the second warning is emitted', () => received === 2)
    })
    expect(warnings.map(({ message }) => /E?[A-Z]{5,}/.exec(message)?.[0])).toEqual(['ECONNREFUSED', 'NOPERM'])
  })
})

test('repeated outages cause one warning a minute for each cause', async () => {
  let now = 0
  const warnings = new OutageWarnings(undefined, () => now)
  const outage = (message: string) => {
    warnings.failed('here', new Error(message))
    warnings.failed('here', new Error(message))
    warnings.ended()
  }
  const emitted = await warningsDuring(() => {
    for (; now < 180_000; now += 1000) {
      outage('redis: no answer within 100 ms')
      outage("redis: READONLY You can't write against a read only replica.")
    }
  })
  expect(emitted.filter(({ message }) => message.includes('READONLY'))).toHaveLength(3)
  expect(emitted).toHaveLength(6)
})

test('a warning shows an unknown error only up to its first quote, and every error has a cause', async () => {
  const emitted = await warningsDuring(() => {
    const cause = new Error('ERR something odd about \'sluice:{client-key}\' and "secret"')
    new OutageWarnings().failed('', new Error('redis: ERR something odd', { cause }))
    new OutageWarnings().failed('', Object.assign(new Error(''), { code: 'ESOMETHING' }))
  })
  expect(emitted.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^the rate limit store on Redis is unavailable: ERR something odd about\. /),
    expect.stringMatching(/unavailable: ESOMETHING\. /),
  ])
})

test('masters of a cluster that fail one after the other cause one warning of the store', async () => {
  const warnings = new OutageWarnings()
  const emitted = await warningsDuring(() => {
    for (const node of ['a:1', 'b:2', 'c:3']) warnings.failed(node, new Error('connect ECONNREFUSED'))
  })
  expect(emitted).toHaveLength(1)
})
