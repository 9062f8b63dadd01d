// Release: runs PostgreSQL.
import { createHash } from 'node:crypto'
import { type HttpContext, type MatchedPolicies, memoryStore } from '@sluice/core'
import { guardByPolicies, isAddressForgeable } from '@sluice/core/internal'
import { OverrideConflict, type OverrideToSet, type Policies, policies } from '@sluice/policies'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'
import { startPlaces } from './places.js'

interface Client {
  readonly user?: string
  readonly ip?: string
  readonly apiKey?: string
}

const { redis, client, pool, documents } = await startPlaces()

const SOURCES = {
  redis: {
    source: () => ({ redis: client }),
    save: () => client as unknown,
  },
  postgres: {
    source: () => ({ postgres: { pool, lookupTimeout: 10_000 } }),
    save: () => pool as unknown,
  },
}

const DOCUMENT = `version: 1
policies:
  api: { key: user, limits: [{ limit: 10, window: 1m }] }
  search:
    key: user
    tier: plan
    tiers: { free: [{ limit: 1, window: 1m }], paid: [{ limit: 5, window: 1m, name: burst }, { limit: 50, window: 1h }] }
overrides:
  - { policy: api, key: { user: pinned }, limits: [{ limit: 77 }] }
  - { policy: api, prefix: { user: acme- }, limits: [{ limit: 20 }] }
`
const RESOLVERS = {
  keys: { user: (request: Client) => request.user },
  tiers: { plan: (request: Client) => (request.user?.startsWith('vip') ? 'paid' : 'free') },
}

function contextOf(given: Client): HttpContext<Client> {
  return {
    request: given,
    method: 'GET',
    path: '/',
    target: '/',
    ip: given.ip,
    route: undefined,
    response: { on() {}, removeListener() {} },
    header: (name) => (name === 'x-api-key' ? given.apiKey : undefined),
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}

/** The number of the policy `api` for a client. */
async function limitFor(loaded: Policies, given: Client): Promise<unknown> {
  const matched = (await loaded.match(contextOf(given))) as MatchedPolicies<Client>
  return matched.options.limits?.find(({ policy }) => policy === 'api')?.limit
}

const inMs = (ms: number) => Date.now() + ms
const toUser = (user: string, limit: number, more: Partial<OverrideToSet> = {}): OverrideToSet => ({
  policy: 'api',
  key: { user },
  limits: [{ limit }],
  until: inMs(3_600_000),
  ...more,
})

describe.each(['redis', 'postgres'] as const)('overrides until a date in %s', (kind) => {
  const opened: Policies[] = []
  const { source, save } = SOURCES[kind]
  const { changes } = memoryStore()
  const ann = { by: 'ann', changes }
  beforeEach(async () => {
    await redis.flush()
    await pool.query('TRUNCATE sluice_policies, sluice_overrides, sluice_removed')
    await documents[kind]().save(DOCUMENT, 0, 'ann')
  })
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
  })

  async function from(more: object = { save: save() }): Promise<Policies> {
    const loaded = await policies.from({ ...source(), ...RESOLVERS, ...more })
    opened.push(loaded)
    return loaded
  }

  test('an override applies to its client at once here, and within a second in another process', async () => {
    const [here, there] = [await from(), await from({})]
    const saved = await here.overrides.set(toUser('42', 1000, { reason: 'trial' }), ann)
    expect(saved).toMatchObject({
      policy: 'api',
      kind: 'user',
      value: '42',
      limits: [{ limit: 1000 }],
      reason: 'trial',
    })
    expect(await limitFor(here, { user: '42' })).toBe(1000)
    expect(await limitFor(here, { user: '43' })).toBe(10)
    await until('the other process has it', async () => (await limitFor(there, { user: '42' })) === 1000)
    expect((await there.overrides.list()).entries).toEqual([saved])
    const explained = await here.explain({ path: '/', request: { user: '42' } })
    expect(explained[0]).toMatchObject({ policy: 'api', limits: [{ limit: 1000 }] })
    expect(typeof explained[0]?.override).toBe('string')
  })

  test('an override ends at its instant, and is then as if it had not been there', async () => {
    const loaded = await from()
    const end = inMs(700)
    await loaded.overrides.set(toUser('acme-1', 1000, { until: end }), ann)
    expect(await limitFor(loaded, { user: 'acme-1' })).toBe(1000)
    await until('it ends', async () => (await limitFor(loaded, { user: 'acme-1' })) === 20)
    expect(Date.now()).toBeGreaterThanOrEqual(end)
    expect(await loaded.overrides.list()).toEqual({ entries: [] })
    expect(await loaded.overrides.get({ policy: 'api', key: { user: 'acme-1' } })).toBeUndefined()
    // Nobody has to name the version of one that has ended.
    await loaded.overrides.set(toUser('acme-1', 3), ann)
    expect(await limitFor(loaded, { user: 'acme-1' })).toBe(3)
  })

  test('a new version of the document leaves overrides, and overrides use up no version', async () => {
    const loaded = await from()
    for (let n = 0; n < 3; n++) await loaded.overrides.set(toUser(`u${n}`, 100 + n), ann)
    expect(await documents[kind]().version()).toBe(1)
    await documents[kind]().save(DOCUMENT.replace('limit: 10,', 'limit: 11,'), 1, 'bob')
    await until('the version is in force', async () => (await limitFor(loaded, { user: 'x' })) === 11)
    expect(await limitFor(loaded, { user: 'u2' })).toBe(102)
  })

  test('a removed override decides no more, and its entries say who has set and removed it', async () => {
    const loaded = await from()
    const saved = await loaded.overrides.set(toUser('42', 1000, { reason: 'trial' }), ann)
    expect(await loaded.overrides.remove({ policy: 'api', key: { user: '42' } }, { by: 'bob', changes })).toBe(true)
    expect(await limitFor(loaded, { user: '42' })).toBe(10)
    expect(await loaded.overrides.remove({ policy: 'api', key: { user: '42' } }, ann)).toBe(false)
    const { entries } = await changes.list({ max: 2 })
    const of = { policy: 'api', kind: 'user', value: '42', state: 'done' }
    const state = { limits: [{ limit: 1000 }], until: saved.until, reason: 'trial' }
    expect(entries).toMatchObject([
      { ...of, by: 'bob', action: 'override-remove', before: { ...state, version: saved.version } },
      { ...of, by: 'ann', action: 'override', after: state },
    ])
  })

  test('of two editors of one override the second is refused, and learns what is there', async () => {
    const [here, there] = [await from(), await from()]
    const both = await Promise.allSettled([
      here.overrides.set(toUser('42', 100), ann),
      there.overrides.set(toUser('42', 200), ann),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const [winner] = both.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const [refused] = both.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    expect(refused).toBeInstanceOf(OverrideConflict)
    expect((refused as OverrideConflict).found).toEqual(winner)
    const plan = await here.overrides.plan(toUser('42', 300))
    expect(plan).toMatchObject({ before: winner, version: winner?.version })
    await there.overrides.set(toUser('42', 300, { expected: plan.version }), ann)
    const late = here.overrides.set(toUser('42', 400, { expected: plan.version }), ann)
    await expect(late).rejects.toBeInstanceOf(OverrideConflict)
    const stale = here.overrides.remove({ policy: 'api', key: { user: '42' }, expected: plan.version }, ann)
    await expect(stale).rejects.toBeInstanceOf(OverrideConflict)
    expect((await here.overrides.list()).entries).toMatchObject([{ limits: [{ limit: 300 }] }])
  })

  test('addresses in any spelling and hashes of secrets find their client', async () => {
    const loaded = await from()
    const value = `sha256:${createHash('sha256').update('k1').digest('hex')}`
    await loaded.overrides.set(toUser('', 30, { key: { ip: '192.0.2.7' } }), ann)
    await loaded.overrides.set(toUser('', 40, { key: { 'header:X-Api-Key': value } }), ann)
    expect(await limitFor(loaded, { user: 'x', ip: '::ffff:192.0.2.7' })).toBe(30)
    expect(await limitFor(loaded, { user: 'x', apiKey: 'k1' })).toBe(40)
    expect(await loaded.overrides.get({ policy: 'api', key: { ip: '::ffff:192.0.2.7' } })).toMatchObject({
      limits: [{ limit: 30 }],
    })
    const { entries } = await changes.list({ max: 1 })
    expect(entries[0]).toMatchObject({ kind: 'header:x-api-key', value: expect.stringMatching(/^[\w-]{43}$/) })
  })

  test('lists are paged without the client in the cursor, and by policy', async () => {
    const loaded = await from()
    const users = Array.from({ length: 7 }, (_, n) => `u${n}`)
    for (const user of users) await loaded.overrides.set(toUser(user, 5), ann)
    await loaded.overrides.set({ ...toUser('s', 5), policy: 'search', limits: [{ name: 'burst', limit: 9 }] }, ann)
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await loaded.overrides.list({ policy: 'api', max: 3, ...(cursor && { cursor }) })
      expect(page.entries.length).toBeLessThanOrEqual(3)
      found.push(...page.entries.map((each) => each.value))
      cursor = page.cursor
      expect(cursor ?? '').not.toMatch(/[a-z]/)
    } while (cursor)
    expect(found.sort()).toEqual(users)
  })

  test('a limiter peeks by the override of a client and by its tier', async () => {
    const loaded = await from()
    await loaded.overrides.set(toUser('42', 1000), ann)
    await loaded.overrides.set({ ...toUser('vip-1', 9), policy: 'search', limits: [{ name: 'burst', limit: 9 }] }, ann)
    const { limiter } = guardByPolicies<Client>({ policies: loaded, store: memoryStore() })
    const left = async (user: string, tier: string) =>
      (await limiter.peek({ user } as never, { tier })).limits.map(({ remaining }) => remaining)
    expect(await left('42', 'api')).toEqual([1000])
    expect(await left('43', 'api')).toEqual([10])
    // Those of the document as well.
    expect(await left('acme-1', 'api')).toEqual([20])
    expect(await left('pinned', 'api')).toEqual([77])
    expect(await left('vip-1', 'search.paid')).toEqual([9, 50])
    expect(await left('vip-1', 'search.free')).toEqual([1])
    // What the peek reports is what a decision takes from.
    await limiter.consume({ user: '42' } as never, { tier: 'api', cost: 30 })
    expect(await left('42', 'api')).toEqual([970])
  })

  test('a plan shows the effect, and changes nothing', async () => {
    const loaded = await from()
    const plan = await loaded.overrides.plan(toUser('42', 1000))
    expect(plan).toMatchObject({
      policy: 'api',
      kind: 'user',
      value: '42',
      before: undefined,
      version: 0,
      canSave: true,
      advice: [],
      changes: [
        {
          limit: 'api',
          before: { algorithm: 'slidingLog', limit: 10, window: 60_000 },
          after: { limit: 1000 },
          isKept: true,
        },
      ],
    })
    const longer = await loaded.overrides.plan(toUser('42', 1, { limits: [{ window: '1h' }] }))
    expect(longer.changes).toMatchObject([{ after: { window: 3_600_000 }, isKept: false }])
    // As requests to such an app, and then to another: the advice is about the app of the last one.
    isAddressForgeable({ proxyTrust: { everyone: 'it', remedy: '', app: {} } }, () => {})
    const shared = await loaded.overrides.plan(toUser('42', 1000, { key: { ip: '192.0.2.7' } }))
    isAddressForgeable({ proxyTrust: 'named' })
    expect(shared.advice.join()).toContain('trusts every proxy')
    expect(await loaded.overrides.list()).toEqual({ entries: [] })
    // The lines have the same effect in a document.
    const pasted = DOCUMENT.replace('overrides:\n', plan.lines)
    const other = await policies.from({ load: () => pasted, ...RESOLVERS })
    expect(await limitFor(other, { user: '42' })).toBe(1000)
  })

  test('wrong overrides are refused with all mistakes, and nothing is written', async () => {
    const loaded = await from()
    const before = (await changes.list({ max: 1 })).entries[0]?.number
    const wrong: [Partial<Record<keyof OverrideToSet, unknown>>, RegExp][] = [
      [{ until: inMs(-1) }, /until: expected a time in the future/],
      [{ until: '2020-01-01T00:00:00Z' }, /until: expected a time in the future/],
      [{ until: '2999-02-30T00:00:00Z' }, /until: expected a time with a zone that there is/],
      [{ until: '2999-01-01' }, /until: expected a time with a zone/],
      [{ until: '2999-01-01T00:00:00Z' }, /until: expected a time within 100 years/],
      [{ until: Number.NaN }, /until: expected a time/],
      [{ until: undefined }, /until: expected a time/],
      [{ policy: 'apl' }, /policy: expected "api" or "search", got "apl"/],
      [{ limits: [{ name: 'burts', limit: 1 }] }, /limits\[0\].name: expected no name/],
      [{ limits: [] }, /limits: expected an array of 1 to 32/],
      [{ limits: [{ limit: -1 }] }, /limits\[0\]/],
      [{ limits: [{ limt: 1 }] }, /unknown field; did you mean limit/],
      [{ limits: 'all' }, /limits: expected/],
      [{ key: {} }, /key: expected one value by its kind/],
      [{ key: { user: '1', ip: '192.0.2.1' } }, /key: expected one value by its kind/],
      [{ key: { usr: '1' } }, /key.usr: expected ip, path/],
      [{ key: { user: 'x'.repeat(1025) } }, /key.user: expected a text of 1 to 1024 bytes/],
      [{ key: { user: 'a\0' } }, /key.user: expected a text/],
      [{ key: { ip: '192.0.2.0/24' } }, /key.ip: expected one address.*range in the document/],
      [{ key: { ip: 'here' } }, /key.ip: expected one address/],
      [{ key: { 'header:x-api-key': 'secret' } }, /expected sha256: and 64/],
      [{ key: { user: 'pinned' } }, /the document, which has overrides\[0\] and decides/],
      [{ reason: 'x'.repeat(201) }, /reason: expected/],
      [{ expected: -1 }, /expected: expected a whole number/],
      [{ untill: 1 } as never, /untill: unknown option/],
    ]
    for (const [part, message] of wrong) {
      await expect(loaded.overrides.set({ ...toUser('42', 1), ...part } as OverrideToSet, ann)).rejects.toThrow(message)
    }
    const two = loaded.overrides.plan(toUser('42', 1, { until: inMs(-1), reason: 'x'.repeat(201) }))
    await expect(two).rejects.toThrow(/until.*\n.*reason/)
    expect(await loaded.overrides.list()).toEqual({ entries: [] })
    expect((await changes.list({ max: 1 })).entries[0]?.number).toBe(before)
  })

  test('without a connection to write on, an override is refused with the lines to paste', async () => {
    const loaded = await from({})
    const plan = await loaded.overrides.plan(toUser('42', 1000))
    expect(plan.canSave).toBe(false)
    const refused = loaded.overrides.set(toUser('42', 1000), ann)
    await expect(refused).rejects.toThrow(
      /pass one as `save`.*\noverrides:\n {2}- \{"policy":"api","key":\{"user":"42"\}/,
    )
    await expect(loaded.overrides.remove({ policy: 'api', key: { user: '42' } }, ann)).rejects.toThrow(
      /pass one as `save`/,
    )
  })

  test('an entry that cannot be written prevents the override', async () => {
    const loaded = await from()
    const broken = { ...changes, record: () => Promise.reject(new Error('Redis is away')), list: changes.list }
    await expect(loaded.overrides.set(toUser('42', 1), { by: 'ann', changes: broken })).rejects.toThrow('Redis is away')
    expect(await loaded.overrides.list()).toEqual({ entries: [] })
  })
})

test('a file, an object and a function have no overrides beside them, and say what to write into the document', async () => {
  const ann = { by: 'ann', changes: memoryStore().changes }
  for (const source of [{ object: { version: 1, policies: { api: { limits: [{ limit: 1, window: '1m' }] } } } }]) {
    const loaded = await policies.from({ ...source, ...RESOLVERS })
    expect(await loaded.overrides.list()).toEqual({ entries: [] })
    expect(await loaded.overrides.plan(toUser('42', 5))).toMatchObject({
      canSave: false,
      changes: [{ after: { limit: 5 } }],
    })
    await expect(loaded.overrides.set(toUser('42', 5), ann)).rejects.toThrow(
      /the document has to change.*\noverrides:\n/,
    )
  }
  await expect(policies.from({ object: {}, save: client })).rejects.toThrow(/save: expected none without redis/)
  await expect(policies.from({ redis: client, save: {} })).rejects.toThrow(/save: expected a client of ioredis/)
  await expect(policies.from({ postgres: pool, save: {} })).rejects.toThrow(/save: expected a Pool of pg/)
})
