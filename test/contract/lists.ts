import {
  createLimiter,
  ipRanges,
  keyed,
  type ManagedStore,
  SluiceError,
  type Store,
  type StoreList,
  type StoreListEntry,
  storeList,
} from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'

const HOUR = 3_600_000

interface Call {
  readonly account: string
  readonly ip: string
}

/** Lists of a store, and decisions by them. */
export function listsContract(under: StoreUnderTest): void {
  describe(`lists on ${under.name}`, () => {
    const clock = new Clock()
    let store: ManagedStore
    beforeAll(async () => {
      store = await under.make(clock.read, { denyCache: false })
    })
    afterAll(() => store.close())
    const listOf = (name: string) => store.list?.(name) as StoreList
    const key = keyed('account', ({ account }: Call) => account)
    const make = (allow: string, deny: string) =>
      createLimiter<Call>({
        name: freshKey(),
        store,
        limit: 10,
        window: '1m',
        key,
        allow: storeList(allow),
        deny: storeList(deny),
      })
    const call = (account: string, ip = '192.0.2.1') => ({ account, ip })

    test('an entry of a list is in force at once, names its reason and its end, and ends then', async () => {
      const name = freshKey()
      const limiter = make('none', name)
      expect((await limiter.consume(call('eve'))).allowed).toBe(true)
      const expiresAt = clock.now + HOUR
      await listOf(name).add({ account: 'eve' }, { reason: 'fraud', expiresAt: new Date(expiresAt) })
      const { reason, list, limits } = await limiter.consume(call('eve'))
      expect({ reason, list, limits }).toEqual({
        reason: 'denied',
        list: { effect: 'deny', kind: 'account', list: name, reason: 'fraud', expiresAt },
        limits: [],
      })
      const entry = { kind: 'account', value: 'eve', reason: 'fraud', since: clock.now, expiresAt }
      expect(await listOf(name).get({ account: 'eve' })).toEqual(entry)
      expect(await all(listOf(name))).toEqual([entry])
      clock.now = expiresAt - 1
      expect((await limiter.consume(call('eve'))).allowed).toBe(false)
      clock.now = expiresAt
      expect((await limiter.consume(call('eve'))).allowed).toBe(true)
      expect(await listOf(name).get({ account: 'eve' })).toBeUndefined()
      expect(await all(listOf(name))).toEqual([])
    })

    test('a list entry without an end holds until a later entry replaces it or it is removed', async () => {
      const name = freshKey()
      const limiter = make(name, 'none')
      await listOf(name).add({ account: 'ann' })
      clock.now += 400 * 24 * HOUR
      expect(await limiter.consume(call('ann'))).toMatchObject({ kind: 'listed', list: { reason: '' } })
      await listOf(name).add({ account: 'ann' }, { reason: 'staff' })
      expect(await all(listOf(name))).toEqual([{ kind: 'account', value: 'ann', reason: 'staff', since: clock.now }])
      expect((await limiter.consume(call('ann'))).list).toMatchObject({ reason: 'staff', expiresAt: undefined })
      await listOf(name).remove({ account: 'ann' })
      expect((await limiter.consume(call('ann'))).kind).toBe('decided')
      await listOf(name).add({ account: 'ann' })
      expect((await limiter.consume(call('ann'))).kind).toBe('listed')
    })

    test('the smallest matching range wins, also among ranges of fixed lists, and a range need not be a network', async () => {
      const [allow, deny] = [freshKey(), freshKey()]
      const limiter = createLimiter<Call>({
        name: freshKey(),
        store,
        limit: 10,
        window: '1m',
        key,
        allow: storeList(allow),
        deny: [storeList(deny), ipRanges(['192.0.2.64/26'])],
      })
      await listOf(deny).add({ ip: '192.0.2.0/24' })
      await listOf(allow).add({ ip: '192.0.2.3-192.0.2.9' })
      await listOf(deny).add({ ip: '192.0.2.7' })
      await listOf(allow).add({ ip: '192.0.2.0/25' })
      await listOf(deny).add({ ip: '2001:db8::7' })
      await listOf(allow).add({ ip: '2001:db8::/32' })
      const kinds = async (...addresses: string[]) =>
        Promise.all(addresses.map(async (ip) => (await limiter.peek(call('x', ip))).list?.effect))
      expect(await kinds('192.0.2.2', '192.0.2.3', '192.0.2.9', '192.0.2.10')).toEqual([
        'allow',
        'allow',
        'allow',
        'allow',
      ])
      expect(await kinds('192.0.2.7', '192.0.2.200', '192.0.2.70', '198.51.100.1')).toEqual([
        'deny',
        'deny',
        'deny',
        undefined,
      ])
      expect(await kinds('2001:db8::1', '2001:db8:0:1::1', '::ffff:192.0.2.7')).toEqual(['deny', 'allow', 'deny'])
      await listOf(allow).remove({ ip: '192.0.2.0/25' })
      expect(await kinds('192.0.2.2', '192.0.2.3', '192.0.2.8', '192.0.2.10')).toEqual([
        'deny',
        'allow',
        'allow',
        'deny',
      ])
      await listOf(allow).remove({ ip: '192.0.2.3-192.0.2.9' })
      expect(await kinds('192.0.2.3')).toEqual(['deny'])
      expect((await all(listOf(deny))).map(({ value }) => value).sort()).toEqual([
        '192.0.2.0/24',
        '192.0.2.7',
        '2001:db8::/64',
      ])
    })

    test('every policy on a store checks the lists of that store', async () => {
      const name = freshKey()
      const of = await under.make(clock.read, { denyCache: false, deny: storeList(name) })
      const limiters = [1, 2].map(() => createLimiter({ name: freshKey(), store: of, limit: 10, window: '1m' }))
      const value = freshKey()
      await of.list?.(name).add({ key: value })
      for (const limiter of limiters) expect((await limiter.consume(value)).reason).toBe('denied')
    })

    test('pages of any size return every list entry of a kind or a prefix exactly once', async () => {
      const list = listOf(freshKey())
      const names = Array.from({ length: 37 }, (_, n) => `n${String(n).padStart(2, '0')}`)
      for (const account of names) await list.add({ account })
      await list.add({ ip: '192.0.2.7' })
      await list.add({ 'header:x-api-key': 'secret' })
      for (const max of [1, 5, 1000]) {
        expect((await all(list, { max, kind: 'account' })).map(({ value }) => value).sort()).toEqual(names)
      }
      expect((await all(list, { prefix: 'n1' })).map(({ value }) => value).sort()).toEqual(names.slice(10, 20))
      expect(JSON.stringify(await all(list))).not.toContain('secret')
      expect(list.size).toBe(39)
      expect([...list.kinds].sort()).toEqual(['account', 'header:x-api-key', 'ip'])
      await list.removeAll()
      expect(await all(list)).toEqual([])
      expect({ size: list.size, kinds: list.kinds }).toEqual({ size: 0, kinds: [] })
    })

    test('two lists of one store share no entries, neither with each other nor with blocks', async () => {
      const [one, other] = [listOf(freshKey()), listOf(freshKey())]
      await one.add({ account: 'ann' })
      await other.add({ account: 'bob' })
      await store.blocks?.removeAll()
      expect((await all(one)).map(({ value }) => value)).toEqual(['ann'])
      expect((await store.blocks?.list())?.entries).toEqual([])
      await one.removeAll()
      expect((await all(other)).map(({ value }) => value)).toEqual(['bob'])
    })

    test('a list rejects an invalid name, entry or cursor with an error that names it', async () => {
      expect(() => store.list?.('a b')).toThrow('list: name: expected')
      expect(() => storeList('')).toThrow('storeList: name: expected')
      const given = listOf('errors') as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
      await expect(given.add?.({ ip: 'nobody' })).rejects.toThrow('list.add: ip: expected an address, or a range')
      await expect(given.add?.({ 'ip+account': ['192.0.2.7', 'ann'] })).rejects.toThrow('not composed')
      await expect(given.add?.({ account: 'ann' }, { expiresAt: clock.now })).rejects.toThrow(
        'list.add: expiresAt: expected',
      )
      await expect(given.add?.({ account: 'ann' }, { for: '1h' })).rejects.toThrow('list.add: for')
      await expect(given.list?.({ cursor: 'x' })).rejects.toThrow(
        'list.list: cursor: expected the cursor of the page before',
      )
      const { decide, reset, close } = store
      const withoutLists: Store = { decide, reset, close }
      const made = () =>
        createLimiter({ name: 'x', store: withoutLists, limit: 1, window: '1m', deny: storeList('abusers') })
      expect(made).toThrow(SluiceError)
      expect(made).toThrow('storeList("abusers")')
    })
  })
}

async function all(list: StoreList, query = {}): Promise<StoreListEntry[]> {
  const found: StoreListEntry[] = []
  let cursor: string | undefined
  do {
    const page = await list.list({ ...query, ...(cursor !== undefined && { cursor }) })
    found.push(...page.entries)
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}
