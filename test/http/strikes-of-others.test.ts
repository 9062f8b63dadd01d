import { byHeader, memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contextOf } from '../support/context.js'
import { byEffort } from '../support/effort.js'

// An attacker wants others to be banned: by images on a page of theirs, which the browsers of its viewers request. Another
// wants to escape bans, by the headers of such requests.

const AFTER = 5
const WITHIN_MS = 601_777
const BAN_MS = 3_600_777

/** Which requests of one client are strikes, by the text of docs/bans.md. */
class Model {
  #strikes: number[] = []
  #rationedAt = Number.NEGATIVE_INFINITY
  #bannedUntil = 0

  refused(now: number, isOfOtherSite: boolean): 'limited' | 'banned' {
    if (now < this.#bannedUntil) return 'banned'
    if (isOfOtherSite && now - this.#rationedAt < 60_000) return 'limited'
    if (isOfOtherSite) this.#rationedAt = now
    this.#strikes = [...this.#strikes.filter((at) => now - at < WITHIN_MS), now]
    if (this.#strikes.length < AFTER) return 'limited'
    this.#strikes = []
    this.#bannedUntil = now + BAN_MS
    return 'banned'
  }
}

const request = fc.record({
  afterMs: fc.constantFrom(0, 0, 1, 7_001, 20_011, 59_999, 60_000, 61_003, 700_009),
  client: fc.constantFrom('ann', 'bob'),
  method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST', 'DELETE', 'get'),
  site: fc.constantFrom(undefined, 'none', 'cross-site', 'cross-site', 'same-site', 'same-origin', 'Cross-Site', ''),
})

test('refused requests that another site causes are one strike a minute for their client, and all others one each', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 10, maxLength: 60 }), async (requests) => {
      let now = 1_800_000_000_000
      const guard = createGuard({
        store: memoryStore({ clock: () => now }),
        limit: 1,
        window: '30d',
        key: byHeader('x-key'),
        ban: { after: AFTER, within: WITHIN_MS, for: [BAN_MS] },
      })
      const send = async (client: string, method = 'GET', site?: string) => {
        const headers = { 'x-key': client, ...(site !== undefined && { 'sec-fetch-site': site }) }
        return (await guard(contextOf({ method, headers }))).verdict?.reason
      }
      const models = new Map<string, Model>()
      for (const { afterMs, client, method, site } of requests) {
        now += afterMs
        const model = models.get(client)
        if (!model) {
          models.set(client, new Model())
          await send(client)
          continue
        }
        const isOfOtherSite = (method === 'GET' || method === 'HEAD') && site === 'cross-site'
        expect(await send(client, method, site)).toBe(model.refused(now, isOfOtherSite))
      }
    }),
    { numRuns: byEffort({ quick: 50, usual: 200, full: 20_000 }) },
  )
})

test('a page with many images of a site has none of its viewers banned', async () => {
  let now = 1_800_000_000_000
  const store = memoryStore({ clock: () => now })
  // The first sample of docs/bans.md.
  const ban = { after: 10, within: '10m', for: ['10m', '1h', '1d', '7d'], forgetAfter: '30d' } as const
  const guard = createGuard({ store, limit: 100, window: '1m', key: byHeader('x-key'), ban })
  const reasons = new Set<string | undefined>()
  for (let image = 0; image < 115; image++) {
    const headers = { 'x-key': 'viewer', 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }
    reasons.add((await guard(contextOf({ headers }))).verdict?.reason)
    now += 10
  }
  expect([...reasons]).toEqual([undefined, 'limited'])
})
