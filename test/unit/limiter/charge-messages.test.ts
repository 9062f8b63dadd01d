import { createLimiter, memoryStore, perMinute } from '@sluice/core'
import { expect, test } from 'vitest'

const kept = createLimiter({ name: 'kept', store: memoryStore(), limits: [perMinute(9)], charges: { keep: '1h' } })
const plain = createLimiter({ name: 'plain', store: memoryStore(), limits: [perMinute(9)] })

test('the id of a refusal, which has none, is rejected with a message that names ids', async () => {
  const message = 'policy "kept": verdict: expected a verdict of this limiter, or the id of a charge, got undefined'
  for (const wrong of [kept.settle(undefined as never, 1), kept.renew(undefined as never)]) {
    await expect(wrong).rejects.toMatchObject({ code: 'INVALID_POLICY', message })
  }
  await expect(plain.settle(undefined as never, 1)).rejects.toThrow(
    /expected a verdict of this limiter, got undefined$/,
  )
})

test('refund with one argument that is no id shows the argument', async () => {
  const message = 'policy "kept": refund: expected refund(key, verdict) or refund(id), got 5 alone'
  await expect(kept.refund(5 as never)).rejects.toMatchObject({ code: 'INVALID_POLICY', message })
  await expect(kept.refund('ann', 'an id' as never)).rejects.toThrow(/expected a verdict of this limiter, got "an id"/)
})
