import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { perSecond, redisStore } from '@sluice/core'
import { type LimitedFetchOptions, limitedFetch } from '@sluice/fetch'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { failuresDuring, warningsDuring } from '../support/process-events.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()
const open = closedAfterEach()
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
    ['rejects with no error', () => Promise.reject(Object.create(null))],
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
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^policy "partner": onWait: (?:of onWait|an object)$/),
    ])
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

describe('a kindOf', () => {
  /** A service that refuses its first request by a page, as a proxy before it does. */
  async function refusing(): Promise<string> {
    let requests = 0
    const server = createServer((_request, response) => {
      if (++requests > 1) return void response.end('ok')
      response.writeHead(429, { 'content-type': 'text/html', 'retry-after-ms': '50' })
      response.end('<html>slow down</html>'.repeat(10_000))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  }

  test('that clones a response and does not read it holds up no retry', async () => {
    const api = limitedFetch(fetch, {
      retry: { attempts: 1 },
      kindOf: (response) => (response.clone().status === 429 ? 'refused' : undefined),
    })
    expect(await (await api(await refusing())).text()).toBe('ok')
  })

  test.each<[string, () => never | Promise<never>]>([
    [
      'throws',
      () => {
        throw new Error('of kindOf')
      },
    ],
    ['rejects', () => Promise.reject(new Error('of kindOf'))],
  ])('that %s is warned of once; status and headers then tell the kind', async (_, kindOf) => {
    const url = await refusing()
    const api = limitedFetch(fetch, { name: 'partner', retry: { attempts: 1 }, kindOf })
    const warnings = await warningsDuring(async () => {
      const response = await api(url)
      expect([response.status, await response.text()]).toEqual([200, 'ok'])
    })
    expect(warnings.map(({ message }) => message)).toEqual(['policy "partner": kindOf: of kindOf'])
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
