// Runs alone: some warnings come once in a process.
import * as express from '@sluice/express'
import { describe, expect, test } from 'vitest'
import { allWarningsDuring as warningsDuring } from '../../support/process-events.js'

const codesOf = (warnings: readonly Error[]) => warnings.map((warning) => (warning as { code?: string }).code)

describe('warnings about how limiters are made', () => {
  const limit = { limit: 5, window: '1m' } as const

  test('two unnamed limiters on one store cause a warning; named ones and separate stores do not', async () => {
    const store = express.memoryStore()
    const codes = codesOf(
      await warningsDuring(() => {
        express.createLimiter({ ...limit, store })
        express.rateLimit({ ...limit, store, name: 'other' })
        express.createLimiter({ ...limit, store: express.memoryStore() })
      }),
    )
    expect(codes).toEqual([])
    expect(codesOf(await warningsDuring(() => express.rateLimit({ ...limit, store })))).toEqual(['SLUICE_SAME_NAME'])
    const silenced = { ...limit, store, warnings: { SLUICE_SAME_NAME: false } } as const
    expect(codesOf(await warningsDuring(() => express.createLimiter(silenced)))).toEqual([])
  })

  test('a third limiter with the same name and limits causes a warning once requests are served', async () => {
    const { createLimiter, keyed, perMinute, rateLimit } = express
    const early = await warningsDuring(() => {
      for (let n = 0; n < 5; n++) createLimiter(limit)
    })
    expect(codesOf(early)).toEqual([])
    const make = (max: number) => () =>
      rateLimit({ name: 'a', limits: [perMinute(max, { key: keyed('k', () => 'k') })] })
    await createLimiter(limit).consume('k')
    const apart = await warningsDuring(() => {
      for (const one of [make(1), make(1), make(2), make(2)]) one()
      for (let n = 0; n < 2; n++) rateLimit({ name: `b${n}`, limit: 1, window: '1m' })
      for (let n = 0; n < 5; n++) createLimiter({ ...limit, name: 'shared', store: express.memoryStore() })
    })
    expect(codesOf(apart)).toEqual([])
    const warnings = await warningsDuring(() => {
      for (let n = 0; n < 5; n++) make(1)()
    })
    expect(codesOf(warnings)).toEqual(['SLUICE_MANY_LIMITERS'])
    expect(warnings[0]?.message).toMatch(
      /^policy "a": 3 limiters of this name and with the same limits .* make it once/,
    )
    const others = await warningsDuring(() => {
      for (let n = 0; n < 200; n++) createLimiter({ ...limit, name: `user-${n}` })
    })
    expect(codesOf(others)).toEqual(['SLUICE_MANY_LIMITERS'])
    expect(others[0]?.message).toMatch(/more than 100 limiters with memory of their own/)
  })

  test('a bare window below 1,000 causes one warning about seconds; a duration with a unit causes none', async () => {
    const warnings = await warningsDuring(() => {
      express.slidingLog({ limit: 5, window: 61 })
      express.slidingLog({ limit: 5, window: 61 })
      express.slidingLog({ limit: 5, window: '62ms' })
      express.slidingLog({ limit: 5, window: 60_000 })
    })
    expect(warnings.map(({ message }) => message)).toEqual([
      "slidingLog: window: 61 is 61 ms: write '61s' for seconds, or '61ms' if that is meant",
    ])
  })

  test('warnings name the place where a limiter without a name was made', async () => {
    const store = express.memoryStore()
    const limiters: express.Limiter[] = []
    const warnings = await warningsDuring(async () => {
      limiters.push(express.createLimiter({ ...limit, store }))
      limiters.push(express.rateLimit({ ...limit, store }).limiter as never)
      for (const limiter of limiters) limiter.on('decision', () => Promise.reject(new Error('mine')))
      for (const limiter of limiters) await limiter.consume('192.0.2.1')
    })
    const place = /\(made at \S+set-up-advice\.test\.ts:\d+\)/g
    const places = warnings.map(({ message }) => message.match(place) ?? [])
    const [[second = '', first = ''] = []] = places
    expect(first).not.toBe(second)
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining(
        `policy "default" ${second}: another limiter without a name uses this store, policy "default" ${first}: `,
      ),
      `policy "default" ${first}: listener of "decision": mine`,
      `policy "default" ${second}: listener of "decision": mine`,
    ])
  })
})
