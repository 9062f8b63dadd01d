import type { Server } from 'node:http'
import { createLimiter, type ManagedStore, memoryStore, type Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, APPS, ask, authorize, portOf, type StartApp } from '../../console/support.js'
import { byEffort } from '../../support/effort.js'
import { withMembers } from '../../support/with-members.js'

const RUNS = byEffort({ usual: 200, full: 20_000 })
const HOST = 'console.example'
const MARK = '<b>\u202emark\u001b'
const IDENTITIES = [
  { kind: 'ip', value: '192.0.2.7' },
  { kind: 'ip', value: '127.0.0.0/8' },
  { kind: 'key', value: MARK },
  { kind: 'header:x-api-key', value: MARK },
  { kind: 'ip+route', value: ['192.0.2.7', MARK] },
  { kind: '__proto__', value: 'x' },
]
const ACTS = [
  'block',
  'unblock',
  'reset',
  'list/add',
  'list/remove',
  'forget',
  'override',
  'override/remove',
  'rollback',
]
const READS = [
  'about',
  'policies',
  'identity',
  'why',
  'blocks',
  'list',
  'offenders',
  'refusals',
  'overrides',
  'override/plan',
  'versions',
  'rollback/plan',
  'changes',
  'figures',
  'figures/history',
  'stream',
  'openapi.json',
]

const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values)
/** Mostly the first, which is right. */
const mostly = <T>(right: T, ...others: readonly T[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(right) }, { weight: 2, arbitrary: oneOf(...others) })

const fields = fc.record(
  {
    identity: fc.oneof(
      { weight: 4, arbitrary: oneOf<unknown>(...IDENTITIES) },
      { weight: 1, arbitrary: fc.anything() },
    ),
    for: mostly<unknown>('1h', 'forever', '-1s', 7, MARK),
    policy: mostly<unknown>('mail', MARK, '.store', ''),
    list: mostly<unknown>('vip', MARK, '__proto__'),
    reason: oneOf<unknown>(MARK, 'x'.repeat(300), 7),
    confirmed: mostly<unknown>(true, false, 'yes'),
    search: oneOf<unknown>(true, false, 1),
    max: oneOf<unknown>(1, 1000, 1e9, -1),
    cursor: oneOf<unknown>('', '7', MARK),
    kind: oneOf<unknown>('ip', MARK),
    path: oneOf<unknown>('/', MARK),
    version: mostly<unknown>(1, 0, MARK),
    expected: mostly<unknown>(1, -1, MARK),
    limits: oneOf<unknown>([{ limit: 5 }], MARK),
    until: oneOf<unknown>('2090-01-01T00:00:00Z', 1),
    expiresAt: oneOf<unknown>(4_000_000_000_000, 1),
  },
  { requiredKeys: [] },
)
/** Bodies that fit the route, and any others. */
const bodies = fc.oneof(
  { weight: 3, arbitrary: fields.map((body) => JSON.stringify(body)) },
  { weight: 3, arbitrary: oneOf(...IDENTITIES).map((identity) => JSON.stringify({ identity })) },
  { weight: 3, arbitrary: oneOf(...IDENTITIES).map((identity) => JSON.stringify({ identity, for: '1h' })) },
  { weight: 3, arbitrary: oneOf(...IDENTITIES).map((identity) => JSON.stringify({ identity, list: 'vip' })) },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: oneOf('', '{', 'null', '[]', '"x"', '{"identity":{"__proto__":{}}}') },
)

interface Attack {
  readonly method: string
  readonly route: string
  readonly suffix: string
  readonly host: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
}

const wild: fc.Arbitrary<Attack> = fc.record({
  method: mostly('POST', 'GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'),
  route: fc.oneof(
    { weight: 5, arbitrary: oneOf(...ACTS) },
    { weight: 3, arbitrary: oneOf(...READS) },
    { weight: 1, arbitrary: oneOf('none', '../api/block', '__proto__', 'block%2f') },
  ),
  suffix: mostly('', '/', '?identity=x', '?', '#x', '%00'),
  host: mostly('own', 'evil.example', '127.0.0.1', ''),
  headers: fc.record({
    authorization: mostly<string | undefined>('ann', 'bob', 'ann ', '', undefined),
    'content-type': mostly<string | undefined>(
      'application/json',
      'application/json; charset=utf-8',
      'text/plain',
      'application/x-www-form-urlencoded',
      undefined,
    ),
    'sluice-console': mostly<string | undefined>('1', '0', '1, 1', undefined),
    'sec-fetch-site': mostly<string | undefined>(
      'same-origin',
      'cross-site',
      'same-site',
      'none',
      'SAME-ORIGIN',
      undefined,
    ),
    origin: mostly<string | undefined>(
      'own',
      'null',
      'https://evil.example',
      'http://127.0.0.1',
      'own.evil',
      undefined,
    ),
    'x-http-method-override': oneOf<string | undefined>(undefined, 'POST'),
    'x-forwarded-host': oneOf<string | undefined>(undefined, 'evil.example'),
    'content-encoding': mostly<string | undefined>(undefined, 'gzip', 'identity'),
  }),
  body: bodies,
})

const IP = { kind: 'ip', value: '192.0.2.7' }
/** Bodies with which a change is made. */
const RIGHT_BODIES: Readonly<Record<string, object>> = {
  block: { identity: IP, for: '1h', reason: MARK },
  reset: { identity: { kind: 'key', value: MARK } },
  'list/add': { identity: IP, list: 'vip' },
  forget: { identity: IP, confirmed: true },
}
const right: fc.Arbitrary<Attack> = oneOf(...Object.keys(RIGHT_BODIES)).map((route) => ({
  method: 'POST',
  route,
  suffix: '',
  host: 'own',
  headers: {
    authorization: 'ann',
    'content-type': 'application/json',
    'sluice-console': '1',
    'sec-fetch-site': 'same-origin',
    origin: 'same',
  },
  body: JSON.stringify(RIGHT_BODIES[route]),
}))
const PARTS = ['method', 'route', 'suffix', 'host', 'body'] as const
const FIELDS = [
  'authorization',
  'content-type',
  'sluice-console',
  'sec-fetch-site',
  'origin',
  'content-encoding',
] as const

/** What makes a change, with a few parts of another request; or all of that. */
const nearlyRight = fc
  .tuple(right, wild, fc.subarray([...PARTS], { maxLength: 1 }), fc.subarray([...FIELDS], { maxLength: 2 }))
  .map(([own, other, parts, names]): Attack => {
    const taken = Object.fromEntries(parts.map((part) => [part, other[part]]))
    const headers = { ...own.headers, ...Object.fromEntries(names.map((name) => [name, other.headers[name]])) }
    return { ...own, ...taken, headers }
  })
const attacks = fc.oneof({ weight: 3, arbitrary: nearlyRight }, { weight: 1, arbitrary: wild })

/** A store that counts the changes made to it. */
function watched(store: ManagedStore): { readonly store: Store; changes(): number } {
  let changes = 0
  const counting =
    <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
    (...args: Args): Result => {
      changes++
      return call(...args)
    }
  const { blocks } = store
  const own = withMembers(store, {
    reset: counting(store.reset.bind(store)),
    forget: counting(store.forget.bind(store)),
    [BANS]: {
      ...store[BANS],
      blocks: Object.assign(Object.create(blocks), {
        get: blocks.get.bind(blocks),
        list: blocks.list.bind(blocks),
        add: counting(blocks.add.bind(blocks)),
        remove: counting(blocks.remove.bind(blocks)),
      }),
    },
    list: (name: string) => {
      const found = store.list(name)
      return Object.assign(Object.create(found), {
        name,
        get: found.get.bind(found),
        list: found.list.bind(found),
        match: found.match.bind(found),
        ready: found.ready.bind(found),
        add: counting(found.add.bind(found)),
        remove: counting(found.remove.bind(found)),
      })
    },
  })
  return { store: own, changes: () => changes }
}

/** Whether a request has all that a change needs, but for its body. */
function mayChange({ method, route, suffix, host, headers }: Attack): boolean {
  const { 'sec-fetch-site': site, origin, 'content-type': type = '' } = headers
  return (
    method === 'POST' &&
    ACTS.includes(route) &&
    (suffix === '' || suffix.startsWith('?') || suffix === '#x') &&
    host === 'own' &&
    headers.authorization?.trim() === 'ann' &&
    type.startsWith('application/json') &&
    headers['sluice-console'] === '1' &&
    (site === undefined || site === 'same-origin') &&
    (origin === undefined || origin === 'own' || origin === 'same')
  )
}

describe.each(Object.entries(APPS))('a generated attacker of the console with %s', (_name, start: StartApp) => {
  let server: Server | undefined
  let port = 0
  const { store, changes } = watched(memoryStore({ offenders: true }))
  const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h' })
  beforeAll(async () => {
    for (let i = 0; i < 3; i++) await mail.consume(MARK)
  })
  afterAll(() => stop(server))

  test('nothing changes without the right headers, and no answer shows a stack or markup', async () => {
    let sent = 0
    let changed = 0
    await fc.assert(
      fc.asyncProperty(attacks, async (attack) => {
        // Its own limiter would refuse what follows.
        if (sent++ % 500 === 0) await restart()
        const before = changes()
        const answer = await send(attack)
        const isChanged = changes() > before
        if (isChanged) changed++
        expect({ attack, isChanged: isChanged && !mayChange(attack) }).toEqual({ attack, isChanged: false })
        expectHarmless(attack, answer)
      }),
      { numRuns: RUNS, seed: byEffort({ usual: 7, full: Date.now() }) },
    )
    // Else the attacker is no attacker.
    expect(changed).toBeGreaterThan(RUNS / 20)
  })

  async function restart(): Promise<void> {
    await stop(server)
    server = await start({ store, limiters: [mail], lists: ['vip'], hosts: [HOST], authorize })
    port = portOf(server)
  }

  function send({ method, route, suffix, host, headers, body }: Attack): Promise<Answer> {
    const sent = host === 'own' ? HOST : host
    const originOf: Record<string, string> = {
      own: `http://${HOST}`,
      'own.evil': `http://${HOST}.evil`,
      same: `http://${sent}`,
    }
    const given = Object.fromEntries(
      Object.entries({ ...headers, host: sent }).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, name === 'origin' ? (originOf[value] ?? value) : value]],
      ),
    )
    const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method)
    return ask(port, `/sluice/api/${route}${suffix.replace('#', '%23')}`, {
      method,
      headers: given,
      ...(hasBody && { body }),
    })
  }
})

function expectHarmless(attack: Attack, { status, text, headers }: Answer): void {
  // Refused by Node, or by the framework before the console.
  if (headers['cache-control'] !== 'no-store, no-transform') {
    expect([400, 404, 405, 413, 415]).toContain(status)
    return
  }
  // A stream ends its lines.
  expect(text).toMatch(/^[ -~]*\n?$/)
  expect(text).not.toMatch(/[<>&']|\\n +at |\bfile:|node_modules/)
  expect({ attack, status }).not.toEqual({ attack, status: 500 })
  expect(headers).not.toHaveProperty('location')
  expect(JSON.stringify(headers)).not.toContain('mark')
}

async function stop(server: Server | undefined): Promise<void> {
  if (!server) return
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
