import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { PoliciesError, policies, problemsIn } from '@sluice/policies'
import fc, { type Arbitrary } from 'fast-check'
import { expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { byEffort } from '../support/effort.js'

/** What code registers for documents. */
const CODE = {
  keys: { user: () => 'ann', account: () => 'acme', 'x-b': () => 'b' },
  tiers: { plan: () => 'paid' },
  costs: { estimate: () => 3 },
}

/** Several in one key are too long. */
const LONG = 'x'.repeat(100)

const window = fc.constantFrom('1s', '1m', '60s', '1.5s', '1h')
const kind = fc.constantFrom('ip', 'user', 'account', 'path', 'everyone', 'header:x-a', 'header:X-A', 'cookie:x+user')
const part = fc.oneof(kind, fc.constantFrom({ ip: { ipv6Prefix: 56 } }, { ip: { ipv4Prefix: 24 } }, { ip: {} }))
const long = fc.constant(`header:${LONG}`)
const key = fc.oneof(part, fc.array(fc.oneof({ weight: 9, arbitrary: part }, long), { minLength: 1, maxLength: 8 }))
const unit = fc.constantFrom('tokens', 'tokens', 'tokens', 'Tokens', 'content-bytes')
/** Names that meet once the name of the policy stands before them. */
const name = fc.constantFrom('x', 'y', 'x-y', '1m', '1m-2', 'Y', 'x'.repeat(60))
const sometimes = <T>(value: Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

interface GivenLimit {
  readonly algorithm?: string
  readonly name?: string
  readonly unit?: string
}

const withoutAbsent = <T extends object>(value: T) =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T

const limitOf = (algorithm: string | undefined, fields: Record<string, Arbitrary<unknown>>) =>
  fc
    .record({
      ...fields,
      name: sometimes(name),
      key: sometimes(key),
      ...(algorithm !== 'concurrency' && { unit: sometimes(unit), estimate: sometimes(fc.constant('cap')) }),
    })
    .map((each) => withoutAbsent({ algorithm, ...each }) as GivenLimit)

const limit = fc.oneof(
  limitOf(undefined, { limit: fc.constantFrom(0, 1, 20, 1_000_000), window }),
  limitOf('fixedWindow', { limit: fc.nat(20), window: fc.oneof(window, fc.constant('month')) }),
  limitOf('slidingWindow', { limit: fc.constantFrom(0, 3, 2 ** 40), window, segments: fc.constantFrom(1, 10) }),
  limitOf('gcra', { limit: fc.constantFrom(1, 7), window, burst: fc.constantFrom(1, 5, 2 ** 30) }),
  limitOf('tokenBucket', { refill: fc.constantFrom(1, 7, 2 ** 20), every: window, capacity: fc.constantFrom(1, 50) }),
  limitOf('leakyBucket', { leak: fc.constantFrom(1, 7), every: window, capacity: fc.constantFrom(1, 5) }),
  limitOf('concurrency', { limit: fc.constantFrom(1, 7), ttl: window }),
)
const limits = fc.oneof(
  { weight: 4, arbitrary: fc.array(limit, { minLength: 1, maxLength: 3 }) },
  { weight: 1, arbitrary: fc.array(limit, { minLength: 12, maxLength: 20 }) },
)
const own = fc.constantFrom<object>(
  { enforce: { mode: 'report' } },
  { enforce: { percent: 50 } },
  { count: { only: 'failure' } },
  { anonymous: 'skip' },
  { ban: { after: 2, within: '1m', for: ['1m'] } },
  { ban: { by: 'user', after: 2, within: '1m', for: ['1m'], respond: 'pass' } },
  { consistency: { syncEvery: '100ms' } },
  { sharedTurns: true },
  { deny: { ip: ['203.0.113.0/24'] } },
  { allow: { user: ['bob'] } },
  { denyLists: ['abusers'] },
  { respond: { delay: { max: '1ms' } } },
  { respond: 'degrade' },
)
const cost = fc.constantFrom(0, 1, 2, 'estimate')
const policy = fc
  .record({ limits, paid: sometimes(limits), own: sometimes(own), key: sometimes(key), cost: sometimes(cost) })
  .map(({ limits, paid, own, key, cost }) => {
    const all = [...limits, ...(paid ?? [])]
    const units = new Set(all.flatMap(({ unit = 'content-bytes' }) => (unit === 'content-bytes' ? [] : [unit])))
    const costs = Object.fromEntries([...units].map((unit) => [unit, 2]))
    return withoutAbsent({
      ...(paid ? { tier: 'plan', tiers: { free: limits, paid } } : { limits }),
      ...own,
      key,
      cost: units.size > 0 && cost !== 0 ? costs : cost,
    })
  })

/** An override of the first limit of each policy. */
function overridesOf(
  policies: Readonly<Record<string, { limits?: readonly GivenLimit[]; tier?: string }>>,
  limit: number,
) {
  return Object.entries(policies).flatMap(([policy, { limits = [] }]) =>
    limits.slice(0, 1).map(({ algorithm = '', name }) => {
      const field = { tokenBucket: 'refill', leakyBucket: 'leak' }[algorithm] ?? 'limit'
      const change = { name, [field]: limit, ...(algorithm === '' && { window: '2m' }) }
      return { policy, key: { user: 'ann' }, limits: [withoutAbsent(change)] }
    }),
  )
}

const document = fc
  .record({
    policies: fc.dictionary(fc.constantFrom('p', 'P', 'p-x', 'p-x-y', 'p-1m', 'q'.repeat(64), 'q'.repeat(63)), policy, {
      minKeys: 1,
      maxKeys: 5,
    }),
    limit: fc.constantFrom(1, 5),
    isOverridden: fc.boolean(),
    carry: fc.constantFrom('keep', 'reset'),
  })
  .map(({ policies, limit, isOverridden, carry }) => {
    const overrides = isOverridden ? overridesOf(policies, limit) : []
    return { version: 1, carry, policies, overrides }
  })

const FIRST = { version: 1, policies: { first: { limits: [{ limit: 1, window: '1m' }] } } }
const options = fc.record({
  body: sometimes(fc.constant({ max: 10 })),
  charges: sometimes(fc.constant({ keep: '1m' })),
})

test('no request fails by a document that has come into force', { timeout: 600_000 }, async () => {
  let inForce = 0
  let rejected = 0
  const property = async (next: object, options: object) => {
    let load: object = FIRST
    const loaded = await policies.from({ load: () => load as never, allowShrink: true, ...CODE })
    const guard = createGuard({
      policies: loaded,
      store: memoryStore(),
      warnings: {},
      ...withoutAbsent(options),
    } as never)
    load = next
    try {
      await loaded.reload()
      inForce++
    } catch (error) {
      if (!(error instanceof PoliciesError)) throw error
      rejected++
    }
    for (const ip of ['192.0.2.7', '2001:db8::1', '192.0.2.7']) {
      const headers = { 'x-a': 'a', [LONG]: 'a', cookie: 'x+user=4' }
      const outcome = await guard(contextOf({ ip, headers }) as never)
      expect(outcome.error).toBeUndefined()
    }
    await loaded.close()
  }
  await fc.assert(fc.asyncProperty(document, options, property), {
    numRuns: byEffort({ usual: 120, full: 20_000 }),
    seed: 7,
  })
  // Both are common enough for the test to be one.
  expect(inForce).toBeGreaterThan((inForce + rejected) / 10)
  expect(rejected).toBeGreaterThan(0)
})

test.each([
  [
    'bytes without the option body',
    { limits: [{ algorithm: 'fixedWindow', limit: 9, window: '1m', unit: 'content-bytes' }] },
    /body: expected/,
  ],
  [
    'units without a cost',
    { limits: [{ limit: 9, window: '1m', unit: 'tokens' }] },
    /cost: expected one that names tokens/,
  ],
])('a document with %s stays out, as requests would fail by it', async (_, policy, expected) => {
  const { loaded, guard, change } = await changingPolicies({
    policies: { api: { limits: [{ limit: 1, window: '1m' }] } },
  })
  const changed = change({ policies: { api: policy } })
  await expect(changed).rejects.toThrow(expected)
  await expect(changed).rejects.toMatchObject({ problems: [{ path: 'policies.api' }] })
  const statuses = [1, 2].map(async () => (await guard(contextOf({ ip: '192.0.2.1' }))).reply?.status)
  expect(await Promise.all(statuses)).toEqual([undefined, 429])
  await loaded.close()
})

test('a document without its code names a reserved key as a problem', () => {
  const text = 'version: 1\npolicies: { api: { key: anonymous, limits: [{ limit: 1, window: 1m }] } }'
  expect(problemsIn(text, 'file', 'any')).toMatchObject([{ line: 2, column: 25, path: 'policies.api.key' }])
})
