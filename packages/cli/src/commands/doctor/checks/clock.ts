import { ms } from '@sluice/core/internal'
import type { Check } from '../check.js'
import { type CheckResult, ok, warning } from '../finding.js'
import { roundTrips } from '../round-trips.js'

/** The smallest difference that is reported. */
const MAX_MS = 1000

/** The difference of the clocks of Redis and of this machine. Decisions use only that of Redis. */
export const clock: Check = {
  name: 'clock',
  async look(server, { pings }): Promise<CheckResult[]> {
    const { aheadMs, uncertainMs } = await roundTrips(server, pings)
    if (aheadMs === undefined) {
      server.deny('time', 'clock')
      return []
    }
    const data = { aheadMs: Math.round(aheadMs), uncertainMs: Math.ceil(uncertainMs) }
    const apart = Math.abs(aheadMs)
    if (apart - uncertainMs <= MAX_MS) {
      return [
        ok(
          `The clocks of Redis and of this machine are within ${ms(Math.max(1, Math.round(apart + uncertainMs)))} of each other.`,
          data,
        ),
      ]
    }
    return [
      warning(
        `The clock of Redis is ${ms(Math.round(apart))} ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine's: limits go by that of Redis, so a failover to another clock shifts windows and blocks.`,
        'Synchronise both machines by NTP.',
        data,
      ),
    ]
  },
}
