import { createGuard } from '@sluice/core/http'
import { memoryStore, type WarningEvent } from '@sluice/express'
import { policies } from '@sluice/policies'
import { expect, test } from 'vitest'

const keys = { user: (request: { user: string }) => request.user }
const users = Array.from({ length: 50 }, (_, i) => `u${i}`)

// biome-ignore lint/suspicious/noExplicitAny: the parts of a request that a guard reads
const contextOf = (user: string, path = '/'): any => ({
  request: { user },
  method: 'GET',
  path,
  target: path,
  ip: '192.0.2.7',
  route: undefined,
  response: { on() {}, removeListener() {} },
  header: () => undefined,
  signedCookie: () => undefined,
  getResponseHeader: () => undefined,
})

async function guardOf(document: object, options: object = {}) {
  const loaded = await policies.from({ object: { version: 1, ...document }, keys })
  const guard = createGuard({ policies: loaded, store: memoryStore(), ...options })
  return { loaded, guard, decide: async (user: string, path?: string) => guard(contextOf(user, path)) }
}

const override = (user: string, limit: number, policy = 'api') => ({ policy, key: { user }, limits: [{ limit }] })
const api = { key: 'user', limits: [{ limit: 1, window: '1m' }] }

test('clients with equal overrides are counted apart, and explained by their own override', async () => {
  const { loaded, decide } = await guardOf({ policies: { api }, overrides: users.map((user) => override(user, 2)) })
  for (const [i, user] of users.entries()) {
    const admitted = [await decide(user), await decide(user), await decide(user)].map(({ proceed }) => proceed)
    expect(admitted).toEqual([true, true, false])
    expect(await loaded.explain({ path: '/', request: { user } })).toMatchObject([
      { override: i, limits: [{ limit: 2 }] },
    ])
  }
})

test('clients with overrides of other numbers and algorithms are each decided by their own', async () => {
  const overrides = users.map((user, i) => ({
    policy: 'api',
    key: { user },
    limits: [i % 2 === 0 ? { limit: i + 1 } : { algorithm: 'gcra', limit: i + 1, window: '1h' }],
  }))
  const { decide } = await guardOf({ policies: { api }, overrides })
  for (const [i, user] of users.entries()) {
    let admitted = 0
    while ((await decide(user)).proceed) admitted++
    expect(admitted).toBe(i + 1)
  }
})

test('with two policies, each client has its own limits in both', async () => {
  const both = {
    api: { key: 'user', limits: [{ limit: 3, window: '1m' }] },
    all: { key: 'user', limits: [{ limit: 100, window: '1m' }] },
  }
  const { decide } = await guardOf({ policies: both, overrides: [override('a', 5), override('b', 2, 'all')] })
  const admittedOf = async (user: string) => {
    let admitted = 0
    while ((await decide(user)).proceed) admitted++
    return admitted
  }
  expect([await admittedOf('a'), await admittedOf('b'), await admittedOf('c')]).toEqual([5, 2, 3])
})

test('a set-up mistake causes one warning, however many overrides and policies there are', async () => {
  const counted = { ...api, count: { only: 'failure' } }
  const document = {
    policies: { api: { ...api, match: { paths: ['/a'] } }, counted: { ...counted, match: { paths: ['/b'] } } },
    overrides: users.flatMap((user, i) => [override(user, 10 + i), override(user, 10 + i, 'counted')]),
  }
  const { guard } = await guardOf(document)
  const warnings: WarningEvent[] = []
  guard.limiter.on('warning', (event) => warnings.push(event))
  for (const user of users) {
    for (const path of ['/a', '/b']) {
      const context = contextOf(user, path)
      await guard(context)
      await guard(context)
    }
  }
  expect(warnings.map(({ code }) => code)).toEqual(['SLUICE_SAME_LIMITER_TWICE'])
})

test('maxConnections of a responder bounds all clients of its policy together', async () => {
  const respond = { delay: { max: '5s', maxConnections: 1 } }
  const slow = { key: 'user', limits: [{ limit: 1, window: '1s' }], respond }
  const overrides = users.map((user, i) => override(user, 1 + (i % 2), 'slow'))
  const { decide } = await guardOf({ policies: { slow }, overrides })
  await decide('u0')
  await decide('u2')
  const delayed = decide('u0')
  expect(await decide('u2')).toMatchObject({ proceed: false })
  expect(await delayed).toMatchObject({ proceed: true })
})
