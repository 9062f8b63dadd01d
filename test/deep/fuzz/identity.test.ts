import { byCookie, byCredentials, byHeader, byIp, byPath, hashedKey, type KeyFunction } from '@sluice/core'
import { createGuard, pathOf } from '@sluice/core/http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { address, noAddress, spelt } from './support/addresses.js'
import { expectSaid, must } from './support/errors.js'
import { appsWith, hand, noting, type Seen } from './support/frameworks.js'
import { fuzz } from './support/fuzz.js'
import { text } from './support/hostile.js'

/** The value that a limiter by address counts. */
const ipKey = (ip: string) => (byIp() as KeyFunction<unknown>)({}, contextOf({ ip })) as string

fuzz('identity', 'every spelling of an address has one key, which no other address has', {
  inputs: address.chain(({ key, spellings }) => fc.record({ key: fc.constant(key), given: spellings })),
  check({ key, given }) {
    // Keys are canonical, so one key stands for one address, or one /64.
    must(ipKey(given) === key, `the key ${key}`, ipKey(given))
  },
})

fuzz('identity', 'a text that is no address is INVALID_KEY', {
  inputs: noAddress,
  async check(given) {
    let key: string | undefined
    const message = await expectSaid(['INVALID_KEY'], () => {
      key = ipKey(given)
    })
    must(key === undefined ? message !== '' : /^[\da-f:./]+$/.test(key), 'an address or an error', key)
    // A text with a key is an address, and its key is another spelling of it.
    if (key !== undefined) must(ipKey(key.replace(/\/64$/, '')) === key, 'a key that is its own', key)
  },
})

const behind: Seen = {}
const direct: Seen = {}
const servers = {
  behind: Object.entries(await appsWith(noting(byIp(), behind), true)),
  direct: Object.entries(await appsWith(noting(byIp(), direct), false)),
}

const hop = fc.oneof(
  spelt,
  noAddress.map((text) => ({ key: undefined, text: text.replaceAll(',', '').trim() })),
)
const separator = fc.constantFrom(',', ', ', ' , ')

fuzz('identity', 'the last hop counts behind one proxy, and the socket without one, whatever is forwarded', {
  inputs: fc.record({ socket: spelt, hops: fc.array(hop, { maxLength: 5 }), separator, app: fc.nat(3) }),
  async check({ socket, hops, separator, app }) {
    const headers: Record<string, string> = { forwarded: 'for=203.0.113.9', 'x-real-ip': '203.0.113.9' }
    if (hops.length > 0) headers['x-forwarded-for'] = hops.map(({ text }) => text).join(separator)
    const [, alone] = servers.direct[app] as (typeof servers.direct)[number]
    await hand(alone, socket.text, headers)
    must(direct.key === socket.key, `the key of the socket, ${socket.key}`, direct)

    const [, proxied] = servers.behind[app] as (typeof servers.behind)[number]
    await hand(proxied, '127.0.0.1', headers)
    const last = hops.at(-1)
    if (!last) must(behind.key === '127.0.0.1', 'the key of the socket', behind)
    else if (last.key !== undefined) must(behind.key === last.key, `the key of the last hop, ${last.key}`, behind)
    // Express and Fastify use an invalid hop as it is, Koa a part of it.
    else must(behind.key !== undefined || behind.code === 'INVALID_KEY', 'an address or an error', behind)
  },
})

const asText = (value: string) => value.replace(/[\r\n\0]/g, '')

fuzz('identity', 'a cookie or header has the key of its value among any others, and a missing one has no key', {
  inputs: fc.record({ before: text, value: text, after: text, pathText: text }),
  async check({ before, value, after, pathText }) {
    const junk = (given: string) => asText(given).replaceAll('sid', 'x')
    const cookie = `${junk(before)}; sid=${encodeURIComponent(value.toWellFormed())}; ${junk(after)}`
    const context = contextOf({ headers: { cookie, 'x-api-key': value } })
    const plain = value.toWellFormed()
    let key: unknown
    const message = await expectSaid(['INVALID_KEY'], () => {
      key = byCookie('sid')({}, context)
    })
    // Some parsers remove a quote at the beginning, and some read what begins with `j:` as JSON: both are rejected.
    if (message) must(/^("|j:)/.test(plain), 'the key of the value', message)
    else must(key === (plain === '' ? '' : hashedKey(plain)), 'the key of the value', key)
    const header = byHeader('x-api-key')({}, context)
    must(header === (value === '' ? '' : hashedKey(value)), 'the key of the value', header)
    const none = byCookie('sid')({}, contextOf({ headers: { cookie: `${junk(before)};${junk(after)}` } }))
    must(none === undefined, 'no key', none)
    const path = pathOf(`/${pathText}`)
    // With `#` in front where it is unreadable.
    must(/^#?\/[^?#]*$/.test(path), 'a path without a query', path)
    must(byPath({ exact: true })({}, contextOf({ path })) === path, 'the path')
  },
})

/** Units that may cause backtracking in a regular expression or a loop. */
const REPEATS = [
  ' ',
  '\t',
  ',',
  ', ',
  ';',
  '; ',
  '=',
  '"',
  '%',
  '%4',
  ':',
  '::',
  '[',
  ']',
  '.',
  '1',
  '1.',
  'f',
  '/',
  '//',
  '?',
]
/** Of CPU time, as the machine may be busy. */
const WHOLE_MS = 50_000

test.each(REPEATS)('a million of %o are parsed in linear time in any place', async (unit) => {
  const long = unit.repeat(1_000_000 / unit.length)
  const guard = createGuard<unknown>({ limit: 0, window: 1, key: () => 'k' })
  const before = process.cpuUsage()
  for (const given of [long, `1${long}`, `${long}x`, `[${long}`, `a${long}b`]) {
    await expectSaid(['INVALID_KEY'], () => ipKey(given))
    const headers = { cookie: given, accept: given }
    byCookie('sid')({}, contextOf({ headers }))
    await expectSaid(['INVALID_KEY'], () => {
      byCookie('sid', { secret: false })({}, contextOf({ headers: { cookie: `sid=${given}` } }))
    })
    for (const key of [byHeader('authorization'), byCredentials()]) {
      for (const scheme of ['Basic', 'Bearer']) {
        await expectSaid(['INVALID_KEY'], () => {
          key({}, contextOf({ headers: { authorization: `${scheme} ${given}` } }))
        })
      }
    }
    await guard(contextOf({ headers }))
    pathOf(given)
    await expectSaid(['INVALID_POLICY'], () => createGuard({ limit: 1, window: given as never, name: given }))
  }
  // Quadratic time would take minutes.
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(WHOLE_MS)
})

/** Names that every object has, but no request. */
test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])(
  'a header named %s is absent unless it is sent',
  async (name) => {
    const seen: Seen = {}
    const apps = await appsWith(noting(byHeader(name, { secret: false }), seen), false)
    for (const server of Object.values(apps)) {
      await hand(server, '192.0.2.1', {})
      expect(seen).toEqual({ key: 'undefined' })
    }
  },
)
