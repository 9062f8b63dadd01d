import { randomUUID } from 'node:crypto'
import { consoleFor } from '@sluice/console'
import { createLimiter, hashedKey, memoryStore, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { HOSTILE } from '../simulate/hostile-texts.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { startRedis } from '../support/redis-server.js'
import { ask, asOperator, startConsole, withBody } from './support.js'

const open = closedAfterEach()

interface Named {
  readonly kind: string
  readonly value: string
}

/** A console with this function, and the identities that it was called with. */
async function served(nameOf: ((identity: Named) => unknown) | undefined, store = memoryStore() as never) {
  const called: Named[] = []
  const own = (identity: Named) => {
    called.push(identity)
    return nameOf?.(identity)
  }
  const port = await startConsole({ store, ...(nameOf && { nameOf: own as never }) }, open)
  const post = (body: unknown) => ask(port, '/sluice/api/names', { headers: withBody(port, 'bob'), body })
  const names = async (...values: string[]) =>
    (await post({ identities: values.map((value) => ({ kind: 'user', value })) })).json.names
  return { port, post, names, called }
}

test('the application names clients, by a value or a promise; undefined is no name', async () => {
  const people: Readonly<Record<string, string>> = { 42: 'Ann Lee', 7: ' Bo  ' }
  const { names, port } = await served(async ({ kind, value }) => (kind === 'user' ? people[value] : undefined))
  expect(await names('42', '1', '7')).toEqual(['Ann Lee', null, 'Bo'])
  const sync = await served(({ value }) => `user of ${value}`)
  expect(await sync.names('42')).toEqual(['user of 42'])
  expect((await ask(port, '/sluice/api/about', { headers: asOperator(port) })).json.features.names).toBe(true)
})

test('without the function there are no names', async () => {
  const { post, port } = await served(undefined)
  expect(await post({ identities: [] })).toMatchObject({ status: 501 })
  expect((await ask(port, '/sluice/api/about', { headers: asOperator(port) })).json.features.names).toBe(false)
  expect(() => consoleFor({ store: memoryStore(), authorize: () => undefined, nameOf: 'ann' as never })).toThrow(
    /consoleFor: nameOf: expected a function/,
  )
})

test('it is called for clients alone: never with a hash, a secret, or what is no client', async () => {
  const { post, called } = await served(() => 'a name')
  const store = memoryStore()
  const long = createLimiter({ name: 'mail', store, limit: 1, window: '1h', key: (key: string) => key })
  await long.block('x'.repeat(300), { for: '1h' })
  const [hashed] = (await store.blocks.list()).entries
  const identities = [
    { kind: 'header:x-api-key', value: 'a raw secret' },
    { kind: 'cookie:session', value: 'a raw secret' },
    { kind: 'credentials', value: 'a raw secret' },
    { kind: 'user+header:x-api-key', value: '42|a raw secret' },
    { kind: 'ip+route', value: '192.0.2.7|/login' },
    { kind: 'account', value: hashedKey('ann@example.com') },
    { kind: 'key', value: hashed?.value as string },
    { kind: 'everyone', value: 'everyone' },
    { kind: 'path', value: '/login' },
    { kind: '__proto__', value: '42' },
    { kind: 'no kind=', value: '42' },
    { kind: 'ip', value: '192.0.2.0/24' },
    { kind: 'user', value: '42' },
  ]
  const { names } = (await post({ identities })).json
  expect(names).toEqual([...identities.slice(2).map(() => null), 'a name', 'a name'])
  expect(called).toEqual(identities.slice(-2))
})

describe('a function that fails gives no name, and one warning a minute', () => {
  const REASONS: Readonly<Record<string, readonly [() => unknown, RegExp]>> = {
    throws: [
      () => {
        throw new Error('secret-of-the-application')
      },
      /nameOf failed: secret-of-the-application/,
    ],
    rejects: [() => Promise.reject(new Error('no database')), /nameOf failed: no database/],
    'rejects with no error': [() => Promise.reject('x'), /nameOf failed: it threw no error/],
    'returns a number': [() => 42, /nameOf failed: expected a text, got number/],
    'returns an object': [() => ({ toString: () => 'ann' }), /nameOf failed: expected a text, got object/],
    'never ends': [() => new Promise(() => {}), /nameOf failed: it took 1 s/],
  }

  test.each(Object.keys(REASONS))('%s', async (reason) => {
    const [fail, sentence] = REASONS[reason] as (typeof REASONS)[string]
    const warnings: string[] = []
    const note = (warning: Error) => warnings.push(warning.message)
    process.on('warning', note)
    open.push(() => process.off('warning', note))
    const { names, post } = await served(({ value }) => (value === 'ann' ? 'Ann' : fail()))
    expect(await names('ann', 'eve', 'ann')).toEqual(['Ann', null, 'Ann'])
    const again = await post({ identities: [{ kind: 'user', value: 'eve' }] })
    expect(again.json).toEqual({ names: [null], ...(reason === 'never ends' && { isLate: true }) })
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings).toEqual([expect.stringMatching(sentence)])
  })
})

test('calls that do not end are bounded: 10 of a request, 100 in all', async () => {
  const { names, called } = await served(() => new Promise(() => {}))
  const many = Array.from({ length: 50 }, (_, n) => String(n))
  const all = await Promise.all(Array.from({ length: 12 }, () => names(...many)))
  expect(all.flat().every((name) => name === null)).toBe(true)
  expect(called).toHaveLength(100)
})

test('names are text: cut at 100 characters, and ASCII on the way', async () => {
  const texts = [...HOSTILE, '\u202e gnirts', '\ud83d\ude00'.repeat(150), 'x'.repeat(10_000_000), ' ', '']
  const { post } = await served(({ value }) => texts[Number(value)])
  const { text, json } = await post({ identities: texts.map((_, n) => ({ kind: 'user', value: String(n) })) })
  expect(text).toMatch(/^[\x20-\x7e]*$/)
  expect(text).not.toMatch(/[<>]/)
  expect(json.names.slice(0, -5)).toEqual(HOSTILE.map((name) => [...name.trim()].slice(0, 100).join('')))
  expect(json.names.slice(-5)).toEqual(['\u202e gnirts', '\ud83d\ude00'.repeat(100), 'x'.repeat(100), null, null])
})

test.each([
  [{}, /identities/],
  [{ identities: Array.from({ length: 101 }, () => ({ kind: 'user', value: '1' })) }, /at most 100/],
  [{ identities: [{ kind: 'user', value: 'x'.repeat(257) }] }, /identities\[0\]\.value/],
  [{ identities: [{ kind: 'user', value: ['a'] }] }, /identities\[0\]\.value/],
  [{ identities: [{ kind: 'user', value: 'a', of: 1 }] }, /no other fields/],
])('a question that is none is rejected: %j', async (body, detail) => {
  const { post, called } = await served(() => 'a name')
  expect(await post(body)).toMatchObject({ status: 400, json: { detail: expect.stringMatching(detail) } })
  expect(called).toEqual([])
})

test('whoever may not use the console gets no name, and the function is not called', async () => {
  const { port, called } = await served(() => 'a name')
  const body = { identities: [{ kind: 'user', value: '42' }] }
  expect((await ask(port, '/sluice/api/names', { headers: withBody(port, 'eve'), body })).status).toBe(403)
  const { 'sluice-console': _, ...withoutOwn } = withBody(port)
  expect((await ask(port, '/sluice/api/names', { headers: withoutOwn, body })).status).toBe(403)
  expect(called).toEqual([])
})

test('no name is stored in Redis', async () => {
  const redis = await startRedis()
  const client = new Redis(redis.port)
  const store = redisStore(client, { prefix: `${randomUUID()}:`, timeout: 15_000 })
  open.push(
    () => redis.stop(),
    () => client.disconnect(),
    () => store.close(),
  )
  await store.ready()
  const { names, port } = await served(() => 'Ann Lee', store as never)
  const body = { identity: { kind: 'user', value: '42' }, for: '1h' }
  await ask(port, '/sluice/api/block', { headers: withBody(port), body })
  expect(await names('42')).toEqual(['Ann Lee'])
  for (const key of await client.keys('*')) {
    expect(((await client.dumpBuffer(key)) ?? Buffer.alloc(0)).toString('latin1')).not.toContain('Ann Lee')
  }
})
