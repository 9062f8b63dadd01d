import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { byCredentials, createLimiter, hashedKey, list, memoryStore, perDay, perMinute } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { expect, test } from 'vitest'
import { contextOf } from '../support/context.js'

const basic = (pair: string) => Buffer.from(pair).toString('base64')
const keyOf = (authorization: string | undefined, key = byCredentials()) =>
  key({}, contextOf(authorization === undefined ? {} : { headers: { authorization } }))

test.each([
  ['Bearer aBc', 'aBc'],
  ['BEARER aBc', 'aBc'],
  ['bearer\t  aBc ', 'aBc'],
  ['Bearer 1|sanctum:style', '1|sanctum:style'],
  [`Basic ${basic('user:pw')}`, 'basic user'],
  [`BASIC  ${basic('user:other')}`, 'basic user'],
  [`Basic ${basic('user:pw').replace(/=+$/, '')}`, 'basic user'],
  [`Basic ${basic('user:pw')}====`, 'basic user'],
  [`Basic ${basic('user:p:w')}`, 'basic user'],
])('byCredentials counts %o as the hash of %o', (authorization, value) => {
  expect(keyOf(authorization)).toBe(hashedKey(value))
})

test.each([undefined, '', 'aBc', 'x1 aBc', 'x2 aBc', 'Digest username="a"', `Basic ${basic(':pw')}`])(
  'byCredentials has no key for %o',
  (authorization) => {
    expect(keyOf(authorization) || undefined).toBeUndefined()
  },
)

test.each([
  'Bearer',
  'Bearer a b',
  'Bearer a, Bearer b',
  'Bearer a,b',
  'Bearer "a"',
  'Bearer a\xa0b',
  'Basic d XNlcjpwdw',
  `Basic ${basic('user')}`,
  `Basic ${basic(`u:${'x'.repeat(4096)}`)}`,
])('byCredentials rejects %o, which verifiers read differently', (authorization) => {
  expect(() => keyOf(authorization)).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
})

test('a token counts the same under every accepted scheme', () => {
  const key = byCredentials({ schemes: ['Bearer', 'Token'] })
  expect(keyOf('token aBc', key)).toBe(keyOf('Bearer aBc', key))
  expect(keyOf(`Basic ${basic('user:pw')}`, key)).toBeUndefined()
})

test('a JSON Web Token has one key in all spellings of its signature that decoders accept', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signed = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.${Buffer.from('{"sub":"a"}').toString('base64url')}`
  const signature = sign('sha256', Buffer.from(signed), privateKey).toString('base64url')
  const last = signature.at(-1) as string
  const other = last === 'A' ? 'B' : String.fromCharCode(last.charCodeAt(0) + (last === 'Z' || last === 'z' ? -1 : 1))
  const spellings = [
    signature,
    `${signature}==`,
    signature.replaceAll('-', '+').replaceAll('_', '/'),
    signature.slice(0, -1) + other,
  ].filter((text) => verify('sha256', Buffer.from(signed), publicKey, Buffer.from(text, 'base64')))
  expect(spellings.length).toBeGreaterThan(2)
  expect(new Set(spellings.map((text) => keyOf(`Bearer ${signed}.${text}`))).size).toBe(1)
  expect(keyOf(`Bearer ${signed}.AAAA`)).not.toBe(keyOf(`Bearer ${signed}.${signature}`))
})

test('credentials given by hand are read like those of requests, in limiters, stores and lists', async () => {
  const store = memoryStore()
  const guard = createGuard({
    store,
    limit: 2,
    window: '1h',
    key: byCredentials(),
    deny: list({ credentials: ['Bearer c'] }),
  })
  const statusOf = async (authorization: string) =>
    (await guard(contextOf({ headers: { authorization } }))).reply?.status
  await guard.limiter.block({ credentials: 'bearer  a' }, { for: '1h' })
  await store.blocks.add({ credentials: `Basic ${basic('ann:')}` }, { for: '1h' })
  expect(await statusOf('Bearer a')).toBe(429)
  expect(await statusOf(`basic ${basic('ann:pw')}`)).toBe(429)
  expect(await statusOf('BEARER c')).toBe(403)
  expect(await statusOf('Bearer b')).toBeUndefined()
  await expect(guard.limiter.peek({ credentials: 'b' })).rejects.toMatchObject({ code: 'INVALID_KEY' })
  const inStore = memoryStore({ deny: list({ credentials: ['Bearer d'] }) })
  const other = createGuard({ store: inStore, limit: 2, window: '1h', key: byCredentials() })
  expect((await other(contextOf({ headers: { authorization: 'bearer d' } }))).reply?.status).toBe(403)
})

test('two byCredentials with the same schemes are one key; others are rejected in one policy', () => {
  const policyOf = (a: string[], b: string[]) => () =>
    createLimiter({
      limits: [perMinute(1, { key: byCredentials({ schemes: a }) }), perDay(9, { key: byCredentials({ schemes: b }) })],
    })
  expect(policyOf(['basic', 'bearer'], ['Bearer', 'BASIC'])).not.toThrow()
  expect(policyOf(['basic', 'bearer'], ['bearer'])).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
})

test.each([
  { schemes: [] },
  { schemes: 'bearer' },
  { schemes: ['bearer '] },
  { schemes: [1] },
  { scheme: ['bearer'] },
  { challenge: 5 },
])('byCredentials rejects the options %o', (options) => {
  expect(() => byCredentials(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
})
