import * as express from '@sluice/express'
import { describe, expect, test } from 'vitest'
import { allWarningsDuring as warningsDuring } from '../../support/process-events.js'

const codesOf = (warnings: readonly Error[]) => warnings.map((warning) => (warning as { code?: string }).code)

describe('how limiters are made', () => {
  const limit = { limit: 5, window: '1m' } as const

  test('two limiters without a name on one store are warned of; named ones, and those of stores apart, are not', async () => {
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

  test('a limiter for each request is warned of, once there are more than a hundred', async () => {
    const decide = () => express.createLimiter(limit).consume('k')
    await decide()
    const few = await warningsDuring(async () => {
      for (let n = 0; n < 30; n++) await decide()
    })
    expect(codesOf(few)).toEqual([])
    const many = await warningsDuring(async () => {
      for (let n = 0; n < 200; n++) await decide()
    })
    expect(codesOf(many)).toEqual(['SLUICE_MANY_LIMITERS'])
  })

  test('a window of a bare number below 1,000 is warned of, as others count seconds; a duration is not', async () => {
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
})
