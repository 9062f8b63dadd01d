// Takes long: begins first.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  createLimiter,
  type Limiter,
  perHour,
  type RedisStore,
  type RedisStoreOptions,
  redisStore,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { oneOfEach, singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { startProxy } from '../support/proxy.js'
import { HOST, type RedisServer, type RedisServerOptions, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

/** Long enough that a busy machine alone misses no deadline: three missed in a row would be an outage of their own. */
const TIMEOUT_MS = 500
/** Only a store that never recovers takes so long; `npm run chaos` measures the time to recover. */
const RECOVERY = { withinMs: 20_000 }
/** Half the time of a hundred decisions that each wait for their deadline. */
const HUNDRED_WAIT_MS = 50 * TIMEOUT_MS

const open = closedAfterEach()

async function server(options: RedisServerOptions = {}): Promise<RedisServer> {
  const started = await startRedis(options)
  open.push(() => started.stop())
  return started
}

interface Outage {
  readonly store: RedisStore
  readonly limiter: Limiter
  /** The states that the store reported, in order. */
  readonly states: string[]
}

async function watched(
  kind: keyof typeof singleClients,
  port: number,
  options: RedisStoreOptions = {},
): Promise<Outage> {
  const { client, close } = singleClients[kind](port)
  open.push(close)
  const states: string[] = []
  const store = redisStore(client, {
    timeout: TIMEOUT_MS,
    onStateChange: (state, cause) => void states.push(cause ? `${state}: ${cause.message}` : state),
    ...options,
  })
  open.push(() => store.close())
  return { store, states, limiter: createLimiter({ name: 'outage', store, limits: [perHour(1000)] }) }
}

async function connected(...args: Parameters<typeof watched>): Promise<Outage> {
  const outage = await watched(...args)
  await until('the store is connected', () => decided(outage.limiter.consume('first')))
  await until('the store is available', () => outage.store.state === 'available')
  outage.states.length = 0
  return outage
}

/** Decides until the store stops waiting for Redis. */
async function untilOpen({ store, limiter }: Outage): Promise<void> {
  await until('the store reports the outage', async () => {
    await limiter.consume('while it finds out')
    return store.state === 'unavailable'
  })
}

const back = ({ limiter }: Outage) => until('Redis decides again', () => decided(limiter.consume('back')), RECOVERY)

describe.each(oneOfEach(singleClients))('%s', (kind) => {
  test('decisions during an outage do not wait, and listeners receive its beginning and its end', async () => {
    const redis = await server()
    const outage = await connected(kind, redis.port)
    redis.kill('SIGKILL')
    await until('the store notices the outage without any traffic', () => outage.store.state === 'unavailable')
    const before = performance.now()
    for (let n = 0; n < 100; n++) expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
    expect(performance.now() - before).toBeLessThan(HUNDRED_WAIT_MS)
    expect((await outage.limiter.peek('k')).remaining).toBe(900)

    await redis.restart()
    await back(outage)
    expect(outage.store.state).toBe('available')
    expect(outage.states).toEqual([expect.stringMatching(/^unavailable: not connected/), 'available'])
    // The shared counts hold again at once, without the charges of the outage.
    expect((await outage.limiter.consume('k')).remaining).toBe(999)
  })

  test('a client at its limit when an outage begins stays refused until its window ends', async () => {
    const redis = await server()
    let now = 1_000_000_000
    const outage = await connected(kind, redis.port, { clock: () => now })
    const limiter = createLimiter({
      name: 'dies',
      store: outage.store,
      limits: [slidingLog({ limit: 3, window: '1m' })],
    })
    await until('the client is at its limit', async () => {
      await limiter.consume('k')
      const { kind: by, remaining } = await limiter.peek('k')
      return by === 'decided' && remaining === 0
    })
    redis.kill('SIGKILL')
    await until('the store notices the outage', () => outage.store.state === 'unavailable')
    now += 59_999
    expect(await limiter.consume('k')).toMatchObject({ kind: 'unavailable', allowed: false, retryAfterMs: 1 })
    now += 1
    expect(await limiter.consume('k')).toMatchObject({ kind: 'unavailable', allowed: true })
  })

  test('few decisions wait for a Redis that hangs, and it decides again soon after it resumes, however long it hung', async () => {
    const redis = await server()
    const outage = await connected(kind, redis.port)
    for (const asleepMs of [400, 2500]) {
      redis.kill('SIGSTOP')
      const before = performance.now()
      for (let n = 0; n < 100; n++) expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
      expect(performance.now() - before).toBeLessThan(HUNDRED_WAIT_MS)
      await sleep(asleepMs)
      expect(outage.store.state).toBe('unavailable')
      redis.kill('SIGCONT')
      await back(outage)
    }
    expect(outage.states.filter((what) => what === 'available')).toHaveLength(2)
  })

  test('a Redis that restarts with replies outstanding is reported as available once, and keeps its connection', async () => {
    const redis = await server()
    const outage = await connected(kind, redis.port)
    redis.kill('SIGSTOP')
    expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
    redis.kill('SIGKILL')
    await redis.restart()
    await back(outage)
    // Beyond the time after which missing replies would end their connection.
    await sleep(1500)
    expect(outage.states).toEqual([expect.stringMatching(/^unavailable/), 'available'])
  })

  test('a store reports an outage when the network drops everything, and recovers with the network', async () => {
    const redis = await server()
    const proxy = await startProxy(redis.port)
    open.push(() => proxy.stop())
    const outage = await connected(kind, proxy.port)
    proxy.toServer.hold()
    await untilOpen(outage)
    // Long enough to abandon the connections that were opened meanwhile.
    await sleep(2500)
    expect(outage.store.state).toBe('unavailable')
    proxy.toServer.pass()
    await back(outage)
  })

  test('a store that starts without Redis decides locally at once, and by Redis once it is up', async () => {
    const port = await freePort()
    const outage = await watched(kind, port)
    await untilOpen(outage)
    const before = performance.now()
    for (let n = 0; n < 100; n++) await outage.limiter.consume('k')
    expect(performance.now() - before).toBeLessThan(HUNDRED_WAIT_MS)
    await server({ port })
    await back(outage)
  })

  test('closing a store frees the permits of its process once, and leaves those of others', async () => {
    const redis = await server()
    const { client, close } = singleClients[kind](redis.port)
    open.push(close)
    const limits = [concurrency({ limit: 4, ttl: '1h' })]
    const stores = [1, 2].map(() => redisStore(client, { timeout: 5000 }))
    const [leaving, staying] = stores.map((store) => createLimiter({ name: 'permits', store, limits })) as [
      Limiter,
      Limiter,
    ]
    open.push(() => stores[1]?.close())
    await decided(leaving.consume('k'))
    const freed = await decided(leaving.consume('k', { cost: { 'concurrent-requests': 2 } }))
    await decided(staying.consume('k'))
    await leaving.release(freed)
    expect((await staying.peek('k')).remaining).toBe(2)
    const pending = leaving.consume('k')
    await Promise.all([stores[0]?.close(), stores[0]?.close()])
    expect((await pending).kind).toBe('decided')
    expect((await decided(staying.peek('k'))).remaining).toBe(3)
    await leaving.release(await pending)
    expect((await decided(staying.peek('k'))).remaining).toBe(3)
  })

  test('a store closes every connection that it abandons, even many at once', async () => {
    const redis = await server({ settings: ['replica-serve-stale-data yes'] })
    const connections = async () => Number((await redis.fields('INFO', 'clients')).connected_clients)
    const outage = await connected(kind, redis.port, { batch: 1, denyCache: false })
    const before = await connections()
    // Other tests bound the time to recover.
    const again = () => until('Redis decides again', () => decided(outage.limiter.consume('back')))
    const many = () => Promise.all(Array.from({ length: 20 }, (_, n) => outage.limiter.consume(`k${n}`)))
    for (let n = 0; n < 3; n++) {
      await redis.call('REPLICAOF', '127.0.0.1', 1)
      await many()
      await redis.call('REPLICAOF', 'NO', 'ONE')
      await again()
      redis.kill('SIGSTOP')
      await many()
      // As long as it takes to abandon a connection, and the next one before its handshake.
      await sleep(2.5 * TIMEOUT_MS)
      redis.kill('SIGCONT')
      await again()
    }
    await until('no abandoned connection is left', async () => (await connections()) === before)
    await outage.store.close()
    await until('the connection of the store is closed', async () => (await connections()) === before - 1)
  })

  test('closing a store during an outage does not wait, and ends its attempts to connect', async () => {
    const redis = await server()
    const outage = await connected(kind, redis.port)
    const permits = createLimiter({ name: 'permits', store: outage.store, limits: [concurrency({ limit: 4 })] })
    await permits.consume('k')
    redis.kill('SIGKILL')
    await until('the store notices the outage', () => outage.store.state === 'unavailable')
    await outage.store.close()
    expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
    await redis.restart()
    await sleep(700)
    expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
    expect(outage.states).toHaveLength(1)
  })
})

interface Refusal {
  /** The beginning of its replies. */
  readonly reply: string
  readonly settings?: readonly string[]
  begin(redis: RedisServer): unknown
  end(redis: RedisServer): unknown
}

/** Servers that reply over stable connections, but whose scripts cannot run or write. */
const REFUSALS: Record<string, Refusal> = {
  'is full and evicts nothing': {
    reply: 'OOM',
    begin: (redis) => redis.call('CONFIG', 'SET', 'maxmemory', 1),
    end: (redis) => redis.call('CONFIG', 'SET', 'maxmemory', 0),
  },
  'has become a replica': {
    // The store reconnects on READONLY, and a decision during that finds no stream.
    reply: "READONLY|Stream isn't writeable",
    settings: ['replica-serve-stale-data yes'],
    begin: (redis) => redis.call('REPLICAOF', '127.0.0.1', 1),
    end: (redis) => redis.call('REPLICAOF', 'NO', 'ONE'),
  },
  'has become a replica that serves nothing': {
    reply: "MASTERDOWN|READONLY|Stream isn't writeable",
    settings: ['replica-serve-stale-data no'],
    begin: (redis) => redis.call('REPLICAOF', '127.0.0.1', 1),
    end: (redis) => redis.call('REPLICAOF', 'NO', 'ONE'),
  },
  'misses its replicas': {
    reply: 'NOREPLICAS',
    begin: (redis) => redis.call('CONFIG', 'SET', 'min-replicas-to-write', 1),
    end: (redis) => redis.call('CONFIG', 'SET', 'min-replicas-to-write', 0),
  },
  'cannot save': {
    reply: 'MISCONF',
    settings: ['enable-protected-configs yes', 'save 3600 1', 'stop-writes-on-bgsave-error yes'],
    begin: async (redis) => {
      const missing = mkdtempSync(join(tmpdir(), 'sluice-gone-'))
      await redis.call('CONFIG', 'SET', 'dir', missing)
      rmSync(missing, { recursive: true })
      await redis.call('BGSAVE')
      await until('saving failed', async () => {
        const { rdb_last_bgsave_status: status } = await redis.fields('INFO', 'persistence')
        return status === 'err'
      })
    },
    end: (redis) => redis.call('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no'),
  },
  'allows no scripts': {
    reply: 'NOPERM',
    begin: (redis) => redis.call('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
    end: (redis) => redis.call('ACL', 'SETUSER', 'default', '+@all'),
  },
  'denies scripts the time': {
    reply: 'ERR (The user executing|ACL failure)|NOPERM',
    begin: (redis) => redis.call('ACL', 'SETUSER', 'default', '-time'),
    end: (redis) => redis.call('ACL', 'SETUSER', 'default', '+@all'),
  },
  'is busy with a script of someone else': {
    reply: 'BUSY|no answer',
    settings: ['busy-reply-threshold 20'],
    begin: async (redis) => {
      redis.call('EVAL', 'while true do end', 0).catch(() => {})
      await until('Redis is busy', async () => /^-BUSY/.test(await replyTo(redis, 'PING')))
    },
    end: (redis) => replyTo(redis, 'SCRIPT KILL'),
  },
  'loads its data': {
    reply: 'LOADING|no answer|not connected',
    // In microseconds for each of 1500 keys: longer than any test takes, so that it goes on until `end`.
    settings: ['enable-debug-command yes', 'key-load-delay 20000', 'loading-process-events-interval-bytes 1024'],
    begin: async (redis) => {
      await Promise.all(Array.from({ length: 1500 }, (_, n) => redis.call('SET', `filler-${n}`, 'x'.repeat(100))))
      redis.call('DEBUG', 'RELOAD').catch(() => {})
      await until('Redis is loading', async () => /^-LOADING/.test(await replyTo(redis, 'PING')))
    },
    end: async (redis) => {
      await replyTo(redis, 'CONFIG SET key-load-delay 0')
      await until('Redis has loaded its data', () => redis.call('PING'))
    },
  },
}

/** The reply to one command on a separate connection, whatever delays the others. */
async function replyTo({ port }: RedisServer, command: string): Promise<string> {
  const socket = connect(port, HOST, () => socket.write(`${command}\r\n`))
  try {
    const [reply] = (await once(socket, 'data')) as [Buffer]
    return String(reply)
  } finally {
    socket.destroy()
  }
}

describe.each(['ioredis 6', 'redis 6'] as const)('a Redis that replies with errors, over %s', (kind) => {
  test.each(Object.entries(REFUSALS))(
    'a Redis that %s causes one outage, and decides again soon after it',
    async (_name, { reply, settings = [], begin, end }) => {
      const redis = await server({ settings })
      const outage = await connected(kind, redis.port)
      await begin(redis)
      const kinds = new Set<string>()
      for (let n = 0; n < 40 || outage.store.state === 'available'; n++) {
        kinds.add((await outage.limiter.consume('k')).kind)
        await sleep(10)
      }
      expect([...kinds]).toEqual(['unavailable'])
      expect(outage.states).toHaveLength(1)
      expect(outage.states[0]).toMatch(new RegExp(`^unavailable: (not connected: )?(redis: )?(${reply})`))
      await end(redis)
      await back(outage)
      expect(outage.states.at(-1)).toBe('available')
    },
  )
})

test('a Redis without scripts is reported as unavailable', async () => {
  const redis = await server({ settings: ['rename-command EVAL ""'] })
  const outage = await watched('ioredis 6', redis.port)
  await untilOpen(outage)
  expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
  await until('the store reports the outage', () => outage.states.length > 0)
  await sleep(500)
  expect(outage.states).toEqual([expect.stringMatching(/^unavailable: .*ERR unknown command/)])
})

test.each([
  ['only blocks and states use', 'get', () => slidingWindow({ limit: 100, window: '1h' })],
  ['only reads of logs use', 'getrange', () => slidingLog({ limit: 100, window: '1h' })],
  ['only counts of permits use', 'zcount', () => concurrency({ limit: 4 })],
  ['only permits use', 'zadd', () => concurrency({ limit: 4 })],
  ['only later charges of a log use', 'setrange', () => slidingLog({ limit: 100, window: '1h' })],
  ['only scripts that Redis knows use', 'evalsha', () => slidingLog({ limit: 100, window: '1h' })],
  ['only new scripts use', 'eval', () => slidingLog({ limit: 100, window: '1h' })],
])('a denied command that %s causes one outage, until it is permitted', async (_, command, limit) => {
  const redis = await server()
  const { store, states } = await connected('ioredis 6', redis.port)
  const limiter = createLimiter({ name: 'permits', store, limits: [limit()] })
  await redis.call('ACL', 'SETUSER', 'default', `-${command}`)
  if (command === 'eval') await redis.call('SCRIPT', 'FLUSH')
  await until('the store notices the outage', async () => {
    await limiter.consume('k')
    return store.state === 'unavailable'
  })
  const end = performance.now() + 700
  while (performance.now() < end) {
    expect((await limiter.consume('k')).kind).toBe('unavailable')
    await sleep(1)
  }
  expect(states).toEqual([expect.stringMatching(/^unavailable: .*(NOPERM|can't run this command)/)])
  await redis.call('ACL', 'SETUSER', 'default', '+@all')
  await until('Redis decides again', () => decided(limiter.consume('other')), RECOVERY)
  expect(states.slice(1)).toEqual(['available'])
})

describe.each(['redis 6', 'redis 5'] as const)('%s', (kind) => {
  test.each([
    ['a command was written', 2],
    ['a command is to be written', 1],
  ])('an event loop that is blocked after %s is not mistaken for a silent Redis', async (_when, turns) => {
    const redis = await server()
    const outage = await connected(kind, redis.port)
    const pending = outage.limiter.consume('k')
    for (let n = 0; n < turns; n++) await new Promise((resolve) => setImmediate(resolve))
    const awakeAt = performance.now() + 1500
    while (performance.now() < awakeAt);
    await pending
    await sleep(100)
    expect(outage.states).toEqual([])
    expect((await decided(outage.limiter.consume('k'))).remaining).toBe(998)
  })
})

test.each([
  [
    'throws',
    () => {
      throw new Error('a listener of the user’s')
    },
  ],
  ['rejects', () => Promise.reject(new Error('a listener of the user’s'))],
])('a listener that %s causes a warning, and changes no decision', async (_how, onStateChange) => {
  const warnings: Error[] = []
  const collect = (warning: Error & { code?: string }) => {
    if (warning.code === 'SLUICE_LISTENER_FAILED') warnings.push(warning)
  }
  process.on('warning', collect)
  open.push(() => process.off('warning', collect))
  const redis = await server()
  const outage = await connected('ioredis 6', redis.port, { onStateChange })
  redis.kill('SIGKILL')
  await until('the store notices the outage', () => outage.store.state === 'unavailable')
  expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
  await redis.restart()
  await back(outage)
  await until('both failures are warned of', () => warnings.length === 2)
  expect(warnings[0]?.message).toBe('onStateChange: a listener of the user’s')
})

test('probes leave no key behind', async () => {
  const redis = await server()
  const outage = await connected('ioredis 6', redis.port)
  redis.kill('SIGSTOP')
  await untilOpen(outage)
  redis.kill('SIGCONT')
  await back(outage)
  await sleep(20)
  for (const key of (await redis.lifetimes()).keys()) expect(key).not.toContain('probe')
})

test('a single decision that misses its deadline does not open the circuit breaker', async () => {
  const redis = await server()
  const proxy = await startProxy(redis.port)
  open.push(() => proxy.stop())
  const outage = await connected('ioredis 6', proxy.port)
  for (let n = 0; n < 4; n++) {
    proxy.toClient.hold()
    expect((await outage.limiter.consume('k')).kind).toBe('unavailable')
    proxy.toClient.pass()
    await until('Redis makes the next decision', () => decided(outage.limiter.consume('k')))
  }
  expect(outage.states).toEqual([])
})

test('each store has its own deadline, whatever the deadline of others on the same Redis', async () => {
  const redis = await server()
  const patient = await connected('ioredis 6', redis.port, { timeout: 20_000 })
  const hasty = await connected('ioredis 6', redis.port, { timeout: 50 })
  redis.kill('SIGSTOP')
  const done: string[] = []
  const ask = async (name: string, { limiter }: Outage) => {
    const { kind } = await limiter.consume('k')
    done.push(`${name}: ${kind}`)
  }
  const first = ask('patient', patient)
  await ask('hasty', hasty)
  await ask('hasty', hasty)
  const second = ask('patient', patient)
  expect(done).toEqual(['hasty: unavailable', 'hasty: unavailable'])
  redis.kill('SIGCONT')
  await Promise.all([first, second])
  expect(done.slice(2)).toEqual(['patient: decided', 'patient: decided'])
})
