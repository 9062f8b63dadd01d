import { perSecond, redisStore } from '@sluice/core'
import { type LimitedFetchOptions, limitedFetch } from '@sluice/fetch'
import { describe, expect, test } from 'vitest'
import { failuresDuring, warningsDuring } from '../support/process-events.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()
const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))

describe('an onWait', () => {
  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('of onWait')
      },
    ],
    ['rejects', () => Promise.reject(new Error('of onWait'))],
  ])('that %s is warned of once, and affects no request', async (_, onWait) => {
    const api = limitedFetch(async () => new Response(), {
      name: 'partner',
      limits: [perSecond(1)],
      onWait: onWait as () => void,
    })
    let statuses: number[] = []
    let failures: unknown[] = []
    const warnings = await warningsDuring(async () => {
      failures = await failuresDuring(async () => {
        statuses = (await times(3, () => api('http://service.test/'))).map(({ status }) => status)
      })
    })
    expect(statuses).toEqual([200, 200, 200])
    expect(failures).toEqual([])
    expect(warnings.map(({ message }) => message)).toEqual(['policy "partner": onWait: of onWait'])
  })

  test('is not called for a request that has ended', async () => {
    const told: string[] = []
    const ended = new Set<string>()
    const api = limitedFetch(async () => new Response(), {
      store: redisStore(client),
      key: 'all',
      limits: [perSecond(1)],
      onWait: ({ origin }) => void (ended.has(origin) && told.push(origin)),
    })
    await api('http://first.test/')
    const abort = new AbortController()
    const aborted = api('http://aborted.test/', { signal: abort.signal }).catch(() => ended.add('http://aborted.test'))
    // It fires after the timer of the wait, which then asks Redis for the reason.
    setTimeout(() => abort.abort(), 50)
    const waits = api('http://waits.test/')
    await Promise.all([aborted, waits])
    expect(told).toEqual([])
  })
})

test.each<[keyof LimitedFetchOptions, unknown, string]>([
  ['onWait', 'log', 'onWait: expected a function, got "log"'],
  ['kindOf', true, 'kindOf: expected a function, got true'],
  ['fairBy', 'account', 'fairBy: expected a function, got "account"'],
  ['priority', 'high', 'priority: expected a finite number, got "high"'],
  ['signal', new AbortController(), 'signal: expected an AbortSignal, got an object'],
])('%s that cannot be used is rejected', (name, value, message) => {
  expect(() => limitedFetch(fetch, { [name]: value })).toThrow(`policy "fetch": ${message}`)
})
