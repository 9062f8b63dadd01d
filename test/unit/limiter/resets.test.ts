import { createLimiter, fixedWindow, memoryStore, perMinute } from '@sluice/core'
import { expect, test } from 'vitest'

test('after a reset of one tier, charges in the other can still be refunded', async () => {
  const limiter = createLimiter<{ id: string; plan: string }>({
    store: memoryStore({ clock: () => 0 }),
    key: ({ id }) => id,
    tiers: { free: [fixedWindow({ limit: 2, window: '1m' })], pro: [fixedWindow({ limit: 9, window: '1m' })] },
    tier: ({ plan }) => plan,
  })
  const [free, pro] = [
    { id: 'ann', plan: 'free' },
    { id: 'ann', plan: 'pro' },
  ]
  const [first, second] = [await limiter.consume(free), await limiter.consume(pro)]
  await limiter.reset(pro)
  await limiter.consume(pro)
  expect([await limiter.refund(free, first), await limiter.refund(pro, second)]).toEqual([true, false])
  expect([(await limiter.peek(free)).remaining, (await limiter.peek(pro)).remaining]).toEqual([2, 8])
})

test('after thousands of resets, charges before a reset are not refunded, and later ones are', async () => {
  const limiter = createLimiter({ store: memoryStore({ clock: () => 0 }), limits: [perMinute(5)] })
  const old = await limiter.consume('ann')
  await limiter.reset('ann')
  const charged = await limiter.consume('ann')
  for (let n = 0; n < 6000; n++) await limiter.reset(`other ${n}`)
  const since = await limiter.consume('ann')
  expect(await limiter.refund('ann', old)).toBe(false)
  expect(await limiter.refund('ann', since)).toBe(true)
  for (let n = 0; n < 6000; n++) await limiter.reset(`another ${n}`)
  expect(await limiter.refund('ann', charged)).toBe(false)
  expect((await limiter.peek('ann')).remaining).toBe(4)
})

test('a refund requested before a reset takes effect before it', async () => {
  const limiter = createLimiter({ store: memoryStore({ clock: () => 0 }), limits: [perMinute(5)] })
  const verdict = await limiter.consume('ann')
  const [refunded] = await Promise.all([limiter.refund('ann', verdict), limiter.reset('ann')])
  expect(refunded).toBe(true)
})

test('a refund without a key throws an error that says so', async () => {
  const limiter = createLimiter({ name: 'mail', limit: 1, window: '1m' })
  const verdict = await limiter.consume('ann')
  const refund = limiter.refund as unknown as (verdict: unknown) => Promise<boolean>
  await expect(refund.call(limiter, verdict)).rejects.toMatchObject({
    code: 'INVALID_KEY',
    message: 'policy "mail": refund: expected refund(key, verdict): the key is missing',
  })
})
