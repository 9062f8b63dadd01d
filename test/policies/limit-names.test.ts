import { createLimiter, perMinute, slidingLog, tokenBucket } from '@sluice/core'
import { policies } from '@sluice/policies'
import { expect, test } from 'vitest'

const REQUESTS = { limit: 60, window: '1m' }
const TOKENS = { algorithm: 'tokenBucket', unit: 'tokens', refill: 20_000, every: '1m' }

async function namesOf(policy: string, limits: readonly object[]) {
  const made = await policies.from({ object: { version: 1, policies: { [policy]: { limits } } } as never })
  const names = made.byName.get(policy)?.options.limits?.map(({ name }) => name)
  await made.close()
  return names
}

test('limits of one window without names have the same names in a document as in code', async () => {
  const limits = [perMinute(60), tokenBucket({ unit: 'tokens', refill: 20_000, every: '1m' })]
  const { limits: inCode } = await createLimiter<string>({ name: 'chat', limits }).peek('ann')
  const names = await namesOf('chat', [REQUESTS, TOKENS])
  expect(names).toEqual(['chat-1m', 'chat-1m-2'])
  expect(names).toEqual(inCode.map(({ name }) => name))
})

test('a limit without a name never has the name of another limit', async () => {
  expect(await namesOf('chat', [REQUESTS, { ...TOKENS, name: '1M' }])).toEqual(['chat-1m-2', 'chat-1M'])
  expect(await namesOf('chat', [REQUESTS, TOKENS, { ...REQUESTS, limit: 9, name: '1m-2' }])).toEqual([
    'chat-1m',
    'chat-1m-3',
    'chat-1m-2',
  ])
  const long = 'p'.repeat(64)
  const names = (await namesOf(long, [REQUESTS, TOKENS])) ?? []
  expect(new Set(names).size).toBe(2)
  // Limits with these names can be made in code, too.
  const limits = names.map((name, i) => slidingLog({ limit: 1 + i, window: '1m', name }))
  expect(createLimiter({ name: 'long', limits }).limits).toHaveLength(2)
})

/** The names of limits by policy, with those of its tiers. */
async function namesIn(document: object) {
  const made = await policies.from({ object: { version: 1, ...document }, tiers: { plan: () => 'paid' } } as never)
  const names = [...made.byName].map(([policy, { options }]) => [policy, options.limits?.map(({ name }) => name)])
  await made.close()
  return Object.fromEntries(names)
}

test('limits of two policies never share a name, in whatever case', async () => {
  const named = (...names: (string | undefined)[]) => ({ limits: names.map((name) => ({ ...REQUESTS, name })) })
  const long = 'p'.repeat(60)
  const all = {
    p: named('x-y'),
    'p-x': named('y', 'z'),
    P: named(undefined),
    'p-x-z': { limits: [REQUESTS] },
    [`${long}abcd`]: named('x'),
    [`${long}abc`]: named('d'),
    [`${long}ab`]: named('cd', 'x'),
  }
  const names = await namesIn({ policies: JSON.parse(JSON.stringify(all)) })
  expect(names).toMatchObject({ p: ['p-x-y'], 'p-x': ['p-x-y-2', 'p-x-z'], P: ['P'], 'p-x-z': ['p-x-z-2'] })
  const each: string[] = Object.values<string[]>(names).flat()
  expect(new Set(each.map((name) => name.toLowerCase())).size).toBe(each.length)
})

test('tiers of a policy name their limits alike', async () => {
  const limits = [REQUESTS, { ...REQUESTS, limit: 9 }]
  const names = await namesIn({
    policies: { 'api-1m': { limits: [REQUESTS] }, api: { tier: 'plan', tiers: { free: limits, paid: limits } } },
  })
  expect(names).toEqual({
    'api-1m': ['api-1m'],
    'api.free': ['api-1m-2', 'api-1m-3'],
    'api.paid': ['api-1m-2', 'api-1m-3'],
  })
})

test('an override changes no name of a limit', async () => {
  const object = {
    version: 1,
    policies: {
      api: { limits: [{ ...REQUESTS, name: 'minute' }, TOKENS], cost: { tokens: 1 } },
      'api-2m': { limits: [REQUESTS] },
    },
    overrides: [{ policy: 'api', key: { ip: '192.0.2.1' }, limits: [{ name: 'minute', window: '2m' }] }],
  }
  const made = await policies.from({ object: object as never })
  const explained = await made.explain({ path: '/', ip: '192.0.2.1' })
  expect(explained.flatMap(({ limits }) => limits.map(({ name, window }) => [name, window]))).toEqual([
    ['api-minute', 120_000],
    ['api-1m', 60_000],
    ['api-2m', 60_000],
  ])
  await made.close()
})

test('two limits of one given name are rejected', async () => {
  const limits = [
    { ...REQUESTS, name: 'a' },
    { ...TOKENS, name: 'A' },
  ]
  await expect(namesOf('chat', limits)).rejects.toThrow(
    /limits\[1\]\.name: expected limits whose names differ.*"A" twice/,
  )
})
