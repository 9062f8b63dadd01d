import { memoryStore } from '@sluice/core'
import { createGuard, type Guard } from '@sluice/core/http'
import { type Policies, policies } from '@sluice/policies'
import { describe, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'

interface Client {
  readonly user?: string
}

/** A document that a test changes, in force in one process. */
class Service {
  #document: object = { version: 1, policies: { none: { match: { paths: ['/none'] }, limits: minute(1) } } }
  #loaded!: Policies
  #guard!: Guard<Client>
  readonly store = memoryStore()

  static async of(document: object): Promise<Service> {
    const service = new Service()
    service.#document = { version: 1, ...document }
    service.#loaded = await policies.from({
      load: () => service.#document,
      keys: { user: (request: Client) => request.user },
      tiers: { plan: () => 'paid' },
      allowShrink: true,
    })
    service.#guard = createGuard<Client>({ policies: service.#loaded, store: service.store, body: { max: 10 } })
    return service
  }

  async change(document: object): Promise<void> {
    this.#document = { version: 1, ...document }
    await this.#loaded.reload()
  }

  /** The number of requests that are admitted. */
  async admits(requests: number, user = 'ann'): Promise<number> {
    let admitted = 0
    for (let n = 0; n < requests; n++) {
      const outcome = await this.#guard(
        contextOf({ request: { user } as never, ip: '192.0.2.1', headers: { 'content-length': '7' } }) as never,
      )
      if (outcome.proceed) admitted++
    }
    return admitted
  }
}

const minute = (limit: number, more: object = {}) => [{ limit, window: '1h', ...more }]
const api = (limit: number, more: object = {}) => ({
  policies: { api: { key: 'user', limits: minute(limit), ...more } },
})

const ALGORITHMS = ['slidingLog', 'fixedWindow', 'slidingWindow', 'gcra', 'tokenBucket', 'leakyBucket']

describe('usage across versions of a document', () => {
  test.each(ALGORITHMS)('usage counts against a higher and a lower limit of %s', async (algorithm) => {
    const service = await Service.of(api(20, { limits: minute(20, { algorithm }) }))
    expect(await service.admits(15)).toBe(15)
    await service.change(api(10, { limits: minute(10, { algorithm }) }))
    expect(await service.admits(5)).toBe(0)
    await service.change(api(40, { limits: minute(40, { algorithm }) }))
    expect(await service.admits(100)).toBe(25)
  })

  test('usage of a window of the calendar counts on, also where its time zone and its first day change', async () => {
    const month = (limit: number, more: object = {}) =>
      api(limit, { limits: [{ algorithm: 'fixedWindow', limit, window: 'month', ...more }] })
    const service = await Service.of(month(20))
    expect(await service.admits(15)).toBe(15)
    await service.change(month(10, { startsOn: 31 }))
    expect(await service.admits(5)).toBe(0)
    await service.change(month(40, { timeZone: 'Asia/Tokyo', startsOn: 7 }))
    expect(await service.admits(100)).toBe(25)
    await service.change(api(40, { limits: [{ algorithm: 'fixedWindow', limit: 40, window: 'week' }] }))
    expect(await service.admits(100)).toBe(40)
  })

  test('usage counts on while an override is added, changed and removed, and for other clients as before', async () => {
    const override = (limit: number) => ({
      ...api(10),
      overrides: [{ policy: 'api', key: { user: 'ann' }, limits: [{ limit }] }],
    })
    const service = await Service.of(api(10))
    expect(await service.admits(20)).toBe(10)
    await service.change(override(15))
    expect(await service.admits(20)).toBe(5)
    await service.change(override(12))
    expect(await service.admits(20)).toBe(0)
    expect(await service.admits(20, 'bob')).toBe(10)
    await service.change(override(30))
    expect(await service.admits(40)).toBe(15)
    await service.change(api(10))
    expect(await service.admits(20)).toBe(0)
  })

  test('usage counts in all limits that share a key, whatever their order and names', async () => {
    const two = (burst: number, hour: number) => [
      { name: `burst-${burst}`, algorithm: 'gcra', limit: burst, window: '30m' },
      { name: 'hour', algorithm: 'fixedWindow', limit: hour, window: '1d' },
    ]
    const service = await Service.of(api(0, { limits: two(10, 100) }))
    expect(await service.admits(20)).toBe(10)
    await service.change(api(0, { limits: two(50, 14).reverse() }))
    expect(await service.admits(20), 'four are left of the day').toBe(4)
  })

  test('usage of limits on different keys counts for its own key in any order', async () => {
    const limits = (user: number, ip: number) => [
      ...minute(user, { algorithm: 'fixedWindow', key: 'user', name: 'user' }),
      ...minute(ip, { algorithm: 'fixedWindow', key: 'ip', name: 'ip' }),
    ]
    const service = await Service.of({ policies: { api: { limits: limits(3, 100) } } })
    expect(await service.admits(10, 'ann')).toBe(3)
    expect(await service.admits(10, 'bob')).toBe(3)
    await service.change({ policies: { api: { limits: limits(4, 7).reverse() } } })
    expect(await service.admits(10, 'ann'), 'the address has one left').toBe(1)
    expect(await service.admits(10, 'cid')).toBe(0)
  })

  test.each(['content-bytes', 'response-bytes'])('usage of %s does not count as requests', async (unit) => {
    const limits = (bytes: number, requests: number) => [
      ...minute(bytes, { algorithm: 'fixedWindow', unit, name: 'bytes' }),
      ...minute(requests, { algorithm: 'fixedWindow', name: 'requests' }),
    ]
    const service = await Service.of(api(0, { limits: limits(100, 5) }))
    expect(await service.admits(10)).toBe(5)
    await service.change(api(0, { limits: limits(100, 8).reverse() }))
    expect(await service.admits(10)).toBe(3)
  })

  test('usage counts within a tier', async () => {
    const tiers = (limit: number) => ({ key: 'user', tier: 'plan', tiers: { free: minute(1), paid: minute(limit) } })
    const service = await Service.of({ policies: { api: tiers(5) } })
    expect(await service.admits(10)).toBe(5)
    await service.change({ policies: { api: tiers(7) } })
    expect(await service.admits(10)).toBe(2)
  })

  test('usage counts through a limit of 0 and back', async () => {
    for (const algorithm of ALGORITHMS) {
      const service = await Service.of(api(0, { limits: minute(10, { algorithm }) }))
      expect(await service.admits(6)).toBe(6)
      await service.change(api(0, { limits: minute(0, { algorithm }) }))
      expect(await service.admits(6)).toBe(0)
      await service.change(api(0, { limits: minute(10, { algorithm }) }))
      expect(await service.admits(20), algorithm).toBe(4)
    }
  })
})

describe('counting that begins anew', () => {
  const CHANGES: Readonly<Record<string, object>> = {
    'another window': api(0, { limits: [{ limit: 5, window: '2h' }] }),
    'another algorithm': api(0, { limits: minute(5, { algorithm: 'fixedWindow' }) }),
    'a renamed policy': { policies: { other: { key: 'user', limits: minute(5) } } },
    'a limit that shares its key with an added one': api(0, {
      limits: [...minute(5), { limit: 99, window: '1d' }],
    }),
    'carry: reset': { carry: 'reset', ...api(5) },
  }

  test.each(Object.entries(CHANGES))('counting begins anew with %s', async (_, next) => {
    const service = await Service.of(api(5))
    expect(await service.admits(10)).toBe(5)
    await service.change(next)
    expect(await service.admits(10)).toBe(5)
  })

  test('with carry: reset, counting begins anew when the number changes, and only then', async () => {
    const service = await Service.of({ carry: 'reset', ...api(5) })
    expect(await service.admits(10)).toBe(5)
    await service.change({ carry: 'reset', ...api(5, { enforce: { mode: 'enforce' } }) })
    expect(await service.admits(10)).toBe(0)
    await service.change({ carry: 'reset', ...api(6) })
    expect(await service.admits(10)).toBe(6)
  })

  test('counting begins anew when the unit of a limit changes', async () => {
    const files = (unit: string) => api(0, { limits: minute(5, { algorithm: 'fixedWindow', unit }) })
    const service = await Service.of(files('requests'))
    expect(await service.admits(10)).toBe(5)
    await service.change(files('response-bytes'))
    expect(await service.admits(10), 'no byte is sent yet').toBe(10)
  })

  test('counting continues when another policy is added', async () => {
    const service = await Service.of(api(5))
    expect(await service.admits(10)).toBe(5)
    const more = { key: 'user', limits: [{ limit: 99, window: '1d' }] }
    await service.change({ policies: { ...api(6).policies, more } })
    expect(await service.admits(10)).toBe(1)
  })
})
