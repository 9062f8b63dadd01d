import {
  type BlockEntry,
  createLimiter,
  type Identity,
  type IdentityByKind,
  keyed,
  type Limiter,
  type ManagedStore,
  type StoreBlocks,
} from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'

const HOUR = 3_600_000
const YEAR = 365 * 24 * HOUR

/** Decisions follow the blocks that `store.blocks` lists and changes. */
export function blocksContract(under: StoreUnderTest): void {
  describe(`blocks on ${under.name}`, () => {
    const clock = new Clock()
    let store: ManagedStore
    let blocks: StoreBlocks
    beforeAll(async () => {
      store = await under.make(clock.read, { denyCache: false })
      blocks = store.blocks as StoreBlocks
    })
    afterAll(() => store.close())
    const limiterOf = (name: string) => createLimiter({ name, store, limit: 10, window: '1m' })

    test('a block is listed with its reason, its times and its number of blocks so far, until it ends', async () => {
      const policy = freshKey()
      const limiter = limiterOf(policy)
      await limiter.block('ann', { for: '1h', reason: 'spam' })
      const first = { policy, kind: 'key', value: 'ann', reason: 'spam', since: clock.now, until: clock.now + HOUR }
      expect(await blocks.get({ key: 'ann' }, { policy })).toEqual({ ...first, times: 1 })
      clock.now += 1000
      await limiter.block('ann', { for: 2 * HOUR })
      const second = { ...first, reason: '', since: clock.now, until: clock.now + 2 * HOUR, times: 2 }
      expect(await all(blocks, policy)).toEqual([second])
      clock.now += 2 * HOUR
      expect(await blocks.get({ key: 'ann' }, { policy })).toBeUndefined()
      expect(await all(blocks, policy)).toEqual([])
      expect((await limiter.consume('ann')).allowed).toBe(true)
    })

    test('a block that the operator adds refuses, and ends when it is removed', async () => {
      const policy = freshKey()
      const limiter = limiterOf(policy)
      await blocks.add({ key: 'bob' }, { policy, for: '1h', reason: 'by hand' })
      const { reason, block } = await limiter.consume('bob')
      expect({ reason, block }).toEqual({ reason: 'blocked', block: { reason: 'by hand', remainingMs: HOUR } })
      await blocks.remove({ key: 'bob' }, { policy })
      expect((await limiter.consume('bob')).remaining).toBe(9)
    })

    test('entries of a list of blocks are taken as they are: their hashes are not hashed again', async () => {
      const policy = freshKey()
      const identities: IdentityByKind[] = [
        { key: 'ann' },
        { key: 'x'.repeat(300) },
        { 'header:x-api-key': 'a secret' },
        { 'ip+route': ['2001:db8::1', '/a|b'] },
        { ip: '2001:db8::1' },
        { ip: '192.0.2.0/24' },
      ]
      for (const identity of identities) await blocks.add(identity, { policy, for: '1h' })
      const entries = await all(blocks, policy)
      expect(entries).toHaveLength(identities.length)
      for (const entry of entries) {
        expect(await blocks.get(entry, { policy })).toEqual(entry)
        await blocks.remove(entry, { policy })
      }
      for (const identity of identities) expect(await blocks.get(identity, { policy })).toBeUndefined()

      const counting = createLimiter({
        name: policy,
        store,
        limit: 2,
        window: '1m',
        key: keyed('account', (_: object) => 'x'.repeat(300)),
      })
      const [{ key: counted } = {}] = (await counting.consume(new URL('http://h/'))).limits
      const identity = counted as Identity
      expect((await counting.peek(identity)).remaining).toBe(1)
      await counting.reset(identity)
      expect((await counting.peek(new URL('http://h/'))).remaining).toBe(2)
      await counting.block(identity, { for: '1h' })
      expect((await counting.consume(new URL('http://h/'))).reason).toBe('blocked')
      await counting.unblock(identity)
      expect((await counting.consume(new URL('http://h/'))).allowed).toBe(true)
    })

    test('a block for ever holds until it is removed, and names no retry time', async () => {
      const policy = freshKey()
      const limiter = limiterOf(policy)
      await limiter.block('ann', { for: Infinity, reason: 'fraud' })
      await blocks.add({ key: 'bob' }, { policy, for: Infinity })
      for (const years of [0, 99]) {
        clock.now += years * YEAR
        for (const key of ['ann', 'bob']) {
          const { allowed, reason, retryAfterMs, block } = await limiter.consume(key)
          expect({ allowed, reason, retryAfterMs }).toEqual({
            allowed: false,
            reason: 'blocked',
            retryAfterMs: undefined,
          })
          expect(block).toEqual({ reason: key === 'ann' ? 'fraud' : '', remainingMs: Infinity })
        }
      }
      const listed = await all(blocks, policy)
      expect(listed.map(({ since, until }) => until - since)).toEqual([200 * YEAR, 200 * YEAR])
      await expect(limiter.acquire('ann')).rejects.toThrow('acquire: it is blocked for ever')
      await blocks.remove({ key: 'ann' }, { policy })
      await limiter.unblock('bob')
      for (const key of ['ann', 'bob']) expect((await limiter.consume(key)).allowed).toBe(true)
    })

    test('a store-wide block holds in every policy, and ends in every policy', async () => {
      const key = freshKey()
      const limiters = [limiterOf(freshKey()), limiterOf(freshKey())]
      await blocks.add({ key }, { for: '1h' })
      for (const limiter of limiters) expect((await limiter.consume(key)).reason).toBe('blocked')
      expect(await blocks.get({ key })).toMatchObject({ kind: 'key', value: key })
      expect(await blocks.get({ key })).not.toHaveProperty('policy')
      await blocks.remove({ key })
      for (const limiter of limiters) expect((await limiter.consume(key)).allowed).toBe(true)
    })

    test('a block of a network refuses every address in it, in one policy or in all, until it ends', async () => {
      const policy = freshKey()
      // Addresses as byIp() counts them, without a request.
      const key = Object.assign((address: string) => address, { kind: 'ip' })
      const [one, other] = [policy, freshKey()].map((name) =>
        createLimiter({ name, store, limit: 10, window: '1m', key }),
      ) as [Limiter, Limiter]
      const reasons = async (limiter: Limiter, ...addresses: string[]) =>
        Promise.all(addresses.map(async (address) => (await limiter.peek(address)).reason))
      await one.block({ ip: '198.51.100.7/24' }, { for: '1h', reason: 'a network' })
      await blocks.add({ ip: '2001:db8:7::/48' }, { for: '1h' })
      const addresses = ['198.51.100.0', '198.51.100.255', '198.51.101.0', '2001:db8:7:1::/64', '2001:db8:8::1']
      const [yes, no] = ['blocked', undefined]
      expect(await reasons(one, ...addresses)).toEqual([yes, yes, no, yes, no])
      expect(await reasons(other, ...addresses)).toEqual([no, no, no, yes, no])
      expect((await one.consume('198.51.100.9')).block).toEqual({ reason: 'a network', remainingMs: HOUR })
      expect((await blocks.get({ ip: '198.51.100.0/24' }, { policy }))?.value).toBe('198.51.100.0/24')
      await one.unblock({ ip: '198.51.100.0/24' })
      clock.now += HOUR
      expect(await reasons(one, ...addresses)).toEqual([no, no, no, no, no])
      for (const ip of ['198.51.100.0/33', '198.51.100/24', 'x/8', '2001:db8::/129']) {
        await expect(blocks.add({ ip }, { for: '1h' })).rejects.toThrow('expected an address or a network')
      }
    })

    test('a client of a network that counts as one is blocked with it', async () => {
      const policy = freshKey()
      const counted = (address: string) => address.replace(/\d+$/, '0/24')
      // As byIp({ ipv4Prefix: 24 }) counts addresses, without a request.
      const key = Object.assign(counted, { kind: 'ip', normalize: counted, bits: { ipv4: 24, ipv6: 64 } })
      const limiter = createLimiter({ name: policy, store, limit: 10, window: '1m', key })
      await limiter.block({ ip: '198.51.102.7' }, { for: '1h' })
      expect((await limiter.consume('198.51.102.200')).reason).toBe('blocked')
      expect((await limiter.consume('198.51.103.7')).allowed).toBe(true)
      expect(await blocks.get({ ip: '198.51.102.0/24' }, { policy })).toMatchObject({ value: '198.51.102.0/24' })
      await limiter.unblock({ ip: '198.51.102.8' })
      expect((await limiter.consume('198.51.102.200')).allowed).toBe(true)
      await blocks.add({ ip: '198.51.102.0/23' }, { for: '1h' })
      expect((await limiter.consume('198.51.102.200')).reason).toBe('blocked')
      await blocks.remove({ ip: '198.51.102.0/23' })
    })

    test('a ban is listed with its rung and its strikes', async () => {
      const name = freshKey()
      const ban = { after: 2, within: '1h', for: ['1h', '1d'] } as const
      const limiter = createLimiter({ name, store, limit: 1, window: '1h', ban })
      for (let n = 0; n < 3; n++) await limiter.consume('guesser')
      const listed = await untilListed(blocks, name)
      expect(listed).toMatchObject({ kind: 'key', value: 'guesser', ban: { rung: 1, strikes: 2 }, times: 1 })
      expect(await blocks.get({ key: 'guesser' }, { policy: name })).toEqual(listed)
      await blocks.remove({ key: 'guesser' }, { policy: name })
      expect((await limiter.peek('guesser')).reason).toBe('limited')
    })

    test('pages of any size return every block of a kind or a prefix exactly once', async () => {
      const policy = freshKey()
      const names = Array.from({ length: 37 }, (_, n) => `n${String(n).padStart(2, '0')}`)
      for (const user of names) await blocks.add({ user }, { policy, for: '1h' })
      await blocks.add({ ip: '2001:db8::7' }, { policy, for: '1h' })
      for (const max of [1, 5, 1000]) {
        const found = await all(blocks, policy, { max, kind: 'user' })
        expect(found.map(({ value }) => value).sort()).toEqual(names)
      }
      expect((await all(blocks, policy, { prefix: 'n1' })).map(({ value }) => value).sort()).toEqual(
        names.slice(10, 20),
      )
      expect((await all(blocks, policy, { kind: 'ip' })).map(({ value }) => value)).toEqual(['2001:db8::/64'])
    })

    test('exported blocks can be imported again, and newer entries remain', async () => {
      const policy = freshKey()
      for (const user of ['ann', 'bob', 'eve']) await blocks.add({ user }, { policy, for: '1h', reason: `of ${user}` })
      const exported = await exportOf(blocks, policy)
      expect(exported).toHaveLength(3)
      await blocks.remove({ user: 'ann' }, { policy })
      clock.now += 1
      await blocks.add({ user: 'bob' }, { policy, for: '2h', reason: 'anew' })
      const lasting = exported.map((entry) => ({ ...entry, since: entry.since + (entry.value === 'ann' ? 1 : 0) }))
      const ended: BlockEntry = { ...(exported[0] as BlockEntry), value: 'gone', until: clock.now }
      expect(await blocks.import(JSON.parse(JSON.stringify([...lasting, ended])))).toBe(1)
      const reasons = new Map((await all(blocks, policy)).map(({ value, reason }) => [value, reason]))
      expect(reasons).toEqual(
        new Map([
          ['ann', 'of ann'],
          ['bob', 'anew'],
          ['eve', 'of eve'],
        ]),
      )
    })

    test('an imported ban keeps its rung: the next ban takes the rung after it, until the rung is forgotten', async () => {
      const name = freshKey()
      const ban = { after: 1, within: '1m', for: ['1m', '1h', '2h', '1d'], forgetAfter: '3h' } as const
      const limiter = createLimiter({ name, store, limit: 1, window: '365d', ban })
      await limiter.consume('guesser')
      expect((await limiter.consume('guesser')).ban?.rung).toBe(1)
      clock.now += 60_000
      expect((await limiter.consume('guesser')).ban?.rung).toBe(2)
      const exported = await until('the second ban is listed', async () =>
        (await exportOf(blocks, name)).find((entry) => entry.ban?.rung === 2),
      )
      expect(exported.ban).toEqual({ rung: 2, strikes: 1, forgetAfterMs: 3 * HOUR })
      await blocks.remove({ key: 'guesser' }, { policy: name })
      clock.now += 1
      expect(await blocks.import(JSON.parse(JSON.stringify([{ ...exported, since: clock.now }])))).toBe(1)
      const held = await limiter.consume('guesser')
      expect([held.reason, held.ban?.rung, held.ban?.until]).toEqual(['banned', 2, exported.until])
      // An import of a lower rung leaves the higher known rung.
      const lower = { ...exported, since: clock.now + 1, ban: { rung: 1, strikes: 1, forgetAfterMs: HOUR } }
      clock.now += 1
      expect(await blocks.import([lower])).toBe(1)
      clock.now = exported.until
      const third = await limiter.consume('guesser')
      expect(third.ban?.rung).toBe(3)
      clock.now = (third.ban?.until ?? 0) + 3 * HOUR
      expect((await limiter.consume('guesser')).ban?.rung).toBe(1)
    })

    test('store.blocks rejects invalid identities, queries and imports with errors that name them', async () => {
      const given = blocks as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
      await expect(given.add?.({ ip: 'nobody' }, { for: '1h' })).rejects.toThrow('blocks.add: ip: expected an address')
      await expect(given.add?.({ ip: '192.0.2.7' }, {})).rejects.toThrow('blocks.add: for: expected')
      await expect(given.get?.({ a: 1, b: 2 })).rejects.toThrow('blocks.get: expected an identity')
      await expect(given.list?.({ cursor: 'x' })).rejects.toThrow(
        'blocks.list: cursor: expected the cursor of the page before',
      )
      await expect(given.list?.({ max: 1001 })).rejects.toThrow('blocks.list: max: expected at most 1000')
      await expect(given.import?.([{ kind: 'ip' }])).rejects.toThrow('blocks.import: [0]: value: expected')
      const entry = { kind: 'key', value: 'ann', reason: '', since: 1, until: 2, times: 1 }
      const bans = {
        'rung: expected at most 32, got 33': { rung: 33 },
        'forgetAfterMs: expected a whole': { forgetAfterMs: -1 },
      }
      for (const [message, wrong] of Object.entries(bans)) {
        const ban = { rung: 1, strikes: 1, ...wrong }
        await expect(given.import?.([{ ...entry, ban }])).rejects.toThrow(`blocks.import: [0]: ban: ${message}`)
      }
    })

    test('removeAll ends all blocks, and a block that follows holds', async () => {
      const policy = freshKey()
      const limiter = limiterOf(policy)
      for (const key of ['ann', 'bob']) await limiter.block(key, { for: '1h' })
      await blocks.add({ key: 'eve' }, { for: '1h' })
      await blocks.removeAll()
      for (const key of ['ann', 'bob', 'eve']) expect((await limiter.consume(key)).allowed).toBe(true)
      expect(await blocks.list()).toEqual({ entries: [] })
      clock.now += 1
      await limiter.block('ann', { for: '1h' })
      expect((await limiter.consume('ann')).reason).toBe('blocked')
    })
  })
}

async function all(blocks: StoreBlocks, policy: string, query = {}): Promise<BlockEntry[]> {
  const found: BlockEntry[] = []
  let cursor: string | undefined
  do {
    const page = await blocks.list({ policy, ...query, ...(cursor !== undefined && { cursor }) })
    found.push(...page.entries.filter((entry) => entry.policy === policy))
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}

async function exportOf(blocks: StoreBlocks, policy: string): Promise<BlockEntry[]> {
  const found: BlockEntry[] = []
  for await (const entry of blocks.export()) if (entry.policy === policy) found.push(entry)
  return found
}

/** A ban reaches the index of Redis a moment after it begins. */
async function untilListed(blocks: StoreBlocks, policy: string): Promise<BlockEntry> {
  return until('the ban is listed', async () => (await all(blocks, policy))[0])
}
