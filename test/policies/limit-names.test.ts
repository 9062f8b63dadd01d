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

test('two limits of one given name are rejected', async () => {
  const limits = [
    { ...REQUESTS, name: 'a' },
    { ...TOKENS, name: 'A' },
  ]
  await expect(namesOf('chat', limits)).rejects.toThrow(
    /limits\[1\]\.name: expected limits whose names differ.*"A" twice/,
  )
})
