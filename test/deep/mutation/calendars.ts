import { createLimiter, fixedWindow, memoryStore } from '@sluice/core'
import { MIDNIGHT } from '../../contract/store-under-test.js'
import { withOtherTimeZones } from '../../support/other-time-zones.js'
import type { Check, Venue } from './check.js'
import { textOf } from './scenario.js'

const DAY_MS = 86_400_000
/** How far the clock of a process is ahead of the store's. Its bounds contain the store's time up to two days behind, or three ahead. */
const AHEAD = [-40, -4, -3, -2, -1, 0, 1, 2, 3, 40].map((days) => days * DAY_MS)
/** Around a bound, and within a period. */
const INSTANTS = [-1, 0, 1, DAY_MS / 2, DAY_MS - 1, DAY_MS, 3 * DAY_MS, 3 * DAY_MS + 1].map((ms) => MIDNIGHT + ms)

/** A store's time within and outside of the bounds that a process sends, where windows in memory are the model. */
async function aheadBy(aheadMs: number, { store, redis, clock }: Venue): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const limiters = [memoryStore({ clock: clock.read }), store].map((of) =>
    createLimiter({
      name: 'apart',
      store: { ...withOtherTimeZones(of, 0), clock: () => clock.now + aheadMs },
      limits: [fixedWindow<string>({ limit: 3, window: 'day' })],
    }),
  )
  for (const now of INSTANTS) {
    clock.now = now
    for (const key of ['ann', `new-${now}`]) {
      const [expected, text] = await Promise.all(limiters.map(async (limiter) => textOf(await limiter.consume(key))))
      if (text !== expected) return `at ${now}: ${text} instead of ${expected}`
    }
  }
  return undefined
}

export const calendarChecks: readonly Check[] = AHEAD.map((aheadMs) => ({
  name: `calendars: a process whose clock is ${aheadMs / DAY_MS} days ahead`,
  run: (venue) => aheadBy(aheadMs, venue),
}))
