// Runs alone: some warnings come once in a process.
import { createLimiter, gcra, memoryStore, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'

test('onVerdict receives the verdicts of consume, and none of peek', async () => {
  const received: unknown[] = []
  const limiter = createLimiter({
    limit: 1,
    window: '1m',
    onVerdict: (key, verdict) => received.push([key, verdict.allowed, verdict.reason]),
  })
  await limiter.peek('ann')
  const verdict = await limiter.consume('ann')
  await limiter.consume('ann')
  expect(received).toEqual([
    ['ann', true, undefined],
    ['ann', false, 'limited'],
  ])
  expect(verdict.allowed).toBe(true)
})

test('onVerdict receives the final verdict of acquire, once', async () => {
  const received: Verdict[] = []
  const limiter = createLimiter({
    limits: [gcra({ limit: 1, window: '50ms' })],
    onVerdict: (_key, verdict) => received.push(verdict),
  })
  await limiter.acquire('ann')
  const waited = await limiter.acquire('ann', { maxWait: Number.POSITIVE_INFINITY })
  expect(received.map(({ allowed }) => allowed)).toEqual([true, true])
  expect(received[1]).toBe(waited)
  await expect(limiter.acquire('ann', { cost: 2 })).rejects.toMatchObject({ code: 'WAIT_EXCEEDED' })
  expect(received.at(-1)).toMatchObject({ allowed: false, reason: 'impossible' })
  expect(received).toHaveLength(3)
})

test('an error thrown by onVerdict rejects the call, and the charge stays', async () => {
  const limiter = createLimiter({
    limit: 5,
    window: '1m',
    store: memoryStore({ clock: () => 0 }),
    onVerdict() {
      throw new Error('mine')
    },
  })
  await expect(limiter.consume('ann')).rejects.toThrow('mine')
  await expect(limiter.acquire('ann')).rejects.toThrow('mine')
  expect((await limiter.peek('ann')).remaining).toBe(3)
})

test('a rejected promise of onVerdict causes a warning, unless that is silenced', async () => {
  const mail = { name: 'mail', limit: 5, window: '1m' } as const
  const make = (warnings: object) =>
    createLimiter({ ...mail, warnings, onVerdict: () => Promise.reject(new Error('mine')) })
  const [loud, silent] = [make({}), make({ SLUICE_LISTENER_FAILED: false })]
  const seen = await warningsDuring(async () => {
    await silent.consume('ann')
    await loud.consume('ann')
  })
  expect(seen).toMatchObject([{ code: 'SLUICE_LISTENER_FAILED', message: 'policy "mail": onVerdict: mine' }])
})

test('createLimiter rejects an onVerdict that is not a function', () => {
  expect(() => createLimiter({ limit: 1, window: '1m', onVerdict: 'log' as never })).toThrow(
    'policy "default": onVerdict: expected a function, got "log"',
  )
})
