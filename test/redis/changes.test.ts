import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChangeEntry, memoryStore, redisStore, type StoreChanges } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.url)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const open = closedAfterEach()

/** Fills a store up to its bound, and one more, faster than one by one. */
async function fillRedis(key: string, count: number): Promise<void> {
  const script = `for n = 1, ARGV[1] do redis.call('ZADD', KEYS[1], n, 'd' .. n .. ':1:{"by":"","action":"old"}') end`
  await server.call('EVAL', script, 1, key, count)
}

const STORES = {
  memory: {
    make: async () => memoryStore(),
    fill: async (changes: StoreChanges, count: number) => {
      for (let n = 0; n < count; n++) await changes.record({ by: '', action: 'old' }, () => {})
    },
  },
  redis: {
    make: async () => {
      const store = redisStore(client, { timeout: 5000 })
      await store.ready()
      return store
    },
    fill: (_changes: StoreChanges, count: number) => fillRedis('sluice:v1:changes', count),
  },
}

describe.each(['memory', 'redis'] as const)('changes in %s', (kind) => {
  async function made() {
    const store = await STORES[kind].make()
    open.push(() => store.close())
    return store
  }
  beforeEach(() => server.flush())

  test('an entry is there while its change is made, and says afterwards that it was', async () => {
    const { changes } = await made()
    const states: unknown[] = []
    const change = {
      by: 'ann',
      action: 'block',
      policy: 'mail',
      identity: { user: 'bob' },
      before: 1,
      after: { for: '1d' },
    }
    const result = await changes.record(change, async () => {
      states.push(...(await changes.list()).entries.map(({ state }) => state))
      return 'made'
    })
    expect(result).toBe('made')
    expect(states).toEqual(['begun'])
    const { entries, cursor } = await changes.list()
    expect(cursor).toBeUndefined()
    expect(entries).toEqual([
      {
        number: 1,
        at: expect.any(Number),
        by: 'ann',
        action: 'block',
        policy: 'mail',
        kind: 'user',
        value: 'bob',
        before: 1,
        after: { for: '1d' },
        state: 'done',
      },
    ])
    expect(Math.abs((entries[0] as ChangeEntry).at - Date.now())).toBeLessThan(600_000)
  })

  test('a change that fails is an entry and an event, and rejects as the change does', async () => {
    const store = await made()
    const seen: ChangeEntry[] = []
    store.on('change', (entry) => void seen.push(entry))
    const failing = store.changes.record({ by: 'ann', action: 'reset' }, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
    await store.changes.record({ by: 'ann', action: 'reset' }, () => {})
    const { entries } = await store.changes.list()
    expect(entries.map(({ number, state }) => [number, state])).toEqual([
      [2, 'done'],
      [1, 'failed'],
    ])
    expect(seen).toEqual([...entries].reverse())
  })

  test('pages are newest first, and a change that comes meanwhile moves no entry to another page', async () => {
    const { changes } = await made()
    const add = (action: string) => changes.record({ by: '', action }, () => {})
    for (const action of ['a', 'b', 'c', 'd', 'e']) await add(action)
    const first = await changes.list({ max: 2 })
    await add('f')
    const second = await changes.list({ max: 2, cursor: first.cursor as string })
    const third = await changes.list({ max: 2, cursor: second.cursor as string })
    const pages = [first, second, third].map(({ entries }) => entries.map(({ action }) => action).join(''))
    expect(pages).toEqual(['ed', 'cb', 'a'])
    expect(third.cursor).toBeUndefined()
  })

  test('of one person, or of one kind, every entry of the log is on one page, also far behind others', async () => {
    const { changes } = await made()
    const make = async (by: string, action: string, count = 1) => {
      for (let n = 0; n < count; n++) await changes.record({ by, action }, () => {})
    }
    await make('ann', 'block')
    await make('carol', 'reset', 130)
    await make('ann', 'reset', 3)
    await make('ann', 'block')
    const numbers = async (query: object) => {
      const { entries, cursor } = await changes.list(query)
      return [entries.map(({ number }) => number), cursor !== undefined]
    }
    expect(await numbers({ by: 'ann' })).toEqual([[135, 134, 133, 132, 1], false])
    expect(await numbers({ by: 'ann', action: 'block' })).toEqual([[135, 1], false])
    expect(await numbers({ by: 'nobody' })).toEqual([[], false])
    const first = await changes.list({ by: 'ann', max: 3 })
    await make('ann', 'block')
    expect(await numbers({ by: 'ann', max: 3, cursor: first.cursor })).toEqual([[132, 1], false])
    // A page that is full, and the last one.
    expect(await numbers({ action: 'block', max: 3 })).toEqual([[136, 135, 1], false])
    expect(await numbers({ action: 'block', max: 2 })).toEqual([[136, 135], true])
    await expect(changes.list({ by: 1 as never })).rejects.toThrow('changes.list: by: expected a text')
  })

  test('the last 10,000 changes are kept', async () => {
    const { changes } = await made()
    await STORES[kind].fill(changes, 10_000)
    await changes.record({ by: '', action: 'new' }, () => {})
    expect((await changes.list({ max: 1 })).entries).toMatchObject([{ number: 10_001, action: 'new' }])
    const oldest = await changes.list({ max: 1000, cursor: '4' })
    expect(oldest.entries.map(({ number }) => number)).toEqual([3, 2])
  })

  test('values of headers are hashes, and long states are left out', async () => {
    const { changes } = await made()
    const identity = { 'header:x-api-key': 'secret' }
    await changes.record({ by: '', action: 'block', identity, after: { reason: 'x'.repeat(5000) } }, () => {})
    const { entries } = await changes.list()
    expect(JSON.stringify(entries)).not.toContain('secret')
    expect(entries[0]?.value).toMatch(/^[\w-]{43}$/)
    expect(entries[0]?.after).toEqual({ omitted: 5013 })
  })

  test('forget erases an identity from the entries, with the states before and after', async () => {
    const store = await made()
    const record = (identity: { user: string }) =>
      store.changes.record({ by: 'ann', action: 'block', identity, before: identity, after: identity }, () => {})
    for (const user of ['bob', 'eve', 'bob']) await record({ user })
    await store.forget({ user: 'bob' })
    const { entries } = await store.changes.list()
    expect(JSON.stringify(entries)).not.toContain('bob')
    expect(entries.map(({ value, isErased, state }) => [value, isErased, state])).toEqual([
      [undefined, true, 'done'],
      ['eve', undefined, 'done'],
      [undefined, true, 'done'],
    ])
  })

  test('a change whose identity is forgotten while it is made still ends', async () => {
    const store = await made()
    await store.changes.record({ by: '', action: 'block', identity: { user: 'bob' } }, () =>
      store.forget({ user: 'bob' }),
    )
    expect((await store.changes.list()).entries).toMatchObject([{ isErased: true, state: 'done' }])
  })

  test('a wrong change is not made', async () => {
    const { changes } = await made()
    let made_ = 0
    const wrong: [object, RegExp][] = [
      [{ by: 1, action: 'a' }, /by: expected a name of up to 100 characters/],
      [{ by: 'x'.repeat(101), action: 'a' }, /by: expected/],
      [{ by: '', action: 'Block it' }, /action: expected/],
      [{ by: '', action: 'a', policy: '' }, /policy: expected/],
      [{ by: '', action: 'a', identity: { ip: 'nowhere' } }, /ip: expected an address/],
      [{ by: '', action: 'a', identity: 'ann' }, /expected an identity such as/],
      [{ by: '', action: 'a', after: () => {} }, /after: expected plain data/],
      [{ by: '', action: 'a', who: 'ann' }, /who: unknown option/],
    ]
    for (const [change, message] of wrong) {
      await expect(changes.record(change as never, () => void made_++)).rejects.toThrow(message)
    }
    expect(made_).toBe(0)
    await expect(changes.list({ max: 0 })).rejects.toThrow(/max: expected/)
    await expect(changes.list({ cursor: 'x' })).rejects.toThrow(/cursor: expected that of|cursor: expected the cursor/)
    expect((await changes.list()).entries).toEqual([])
  })
})

test('without Redis a change is not made; with a Redis that ends meanwhile, its entry says that it has begun', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'changes-'))
  const own = await startRedis({ settings: [`dir ${folder}`, 'appendonly yes', 'appendfsync always'] })
  const ours = new Redis(own.url, { retryStrategy: () => 50 })
  ours.on('error', () => {})
  const store = redisStore(ours, { timeout: 300, warnings: { SLUICE_STORE_UNAVAILABLE: false } })
  open.push(
    () => rmSync(folder, { recursive: true }),
    () => own.stop(),
    () => ours.disconnect(),
    () => store.close(),
  )
  await store.ready()
  let made = 0
  await store.changes.record({ by: 'ann', action: 'first' }, async () => {
    made++
    own.kill('SIGKILL')
    await until('the outage is noticed', () => ours.status !== 'ready')
  })
  expect(made).toBe(1)
  await expect(store.changes.record({ by: 'ann', action: 'second' }, () => void made++)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  expect(made).toBe(1)
  await own.restart()
  const { entries } = await until('Redis is back', () => store.changes.list())
  expect(entries.find(({ action }) => action === 'first')?.state).toBe('begun')
})

test.each(['1e12', '999999999999999', '1e300', 'inf', '2.5', '-inf', '0'])(
  'a member that is not ours, with the score %s, hides no entry and keeps none from being made',
  async (score) => {
    await server.flush()
    const store = redisStore(client, { timeout: 5000 })
    open.push(() => store.close())
    const add = (action: string) => store.changes.record({ by: '', action, identity: { user: 'bob' } }, () => {})
    for (const action of ['a', 'b', 'c']) await add(action)
    await client.zadd('sluice:v1:changes', score, '{"format":2}')
    for (const action of ['d', 'e']) await add(action)
    for (const max of [1, 2, 3, 100]) {
      const found: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.changes.list({ max, ...(cursor !== undefined && { cursor }) })
        found.push(...page.entries.map(({ number, action, state }) => `${number}${action} ${state}`))
        cursor = page.cursor
      } while (cursor !== undefined)
      expect(found).toEqual(['5e done', '4d done', '3c done', '2b done', '1a done'])
    }
    await store.forget({ user: 'bob' })
    expect((await store.changes.list()).entries.map(({ isErased }) => isErased)).toEqual(Array(5).fill(true))
  },
)

test('numbers that another version has left out hide no entry', async () => {
  await server.flush()
  const store = redisStore(client, { timeout: 5000 })
  open.push(() => store.close())
  const add = (action: string) => store.changes.record({ by: '', action }, () => {})
  await add('before')
  await client.zadd('sluice:v1:changes', 5000, 'x5000:1:{}')
  await add('after')
  const first = await store.changes.list({ max: 100 })
  expect(first.entries).toMatchObject([{ number: 5001, action: 'after' }])
  const second = await store.changes.list({ max: 100, cursor: first.cursor as string })
  expect(second).toMatchObject({ entries: [{ number: 1, action: 'before' }] })
  expect(second.cursor).toBeUndefined()
})
