import { ms } from '@sluice/core/internal'
import type { Check } from '../check.js'
import { error, ok, warning } from '../finding.js'
import { roundTrips } from '../round-trips.js'

/** The duration of a round trip, compared with the timeout of the store. */
export const latency: Check = {
  name: 'latency',
  async look(server, { pings, storeTimeoutMs }) {
    const trips = (await roundTrips(server, pings)).ms
    const median = trips[Math.floor(trips.length / 2)] as number
    const worst = trips.at(-1) as number
    const data = { medianMs: median, worstMs: worst, pings: trips.length, storeTimeoutMs }
    const measured = `median ${ms(median)}, worst ${ms(worst)} of ${trips.length}`
    if (median >= storeTimeoutMs) {
      return [
        error(
          `A round trip takes longer than the ${ms(storeTimeoutMs)} that the store gives a decision (timeout): ${measured}.`,
          'Run Redis nearer to your servers, or raise timeout of redisStore.',
          data,
        ),
      ]
    }
    if (worst >= storeTimeoutMs || median >= storeTimeoutMs / 2) {
      return [
        warning(
          `A round trip ${worst >= storeTimeoutMs ? 'sometimes takes longer than' : 'takes more than half of'} the ${ms(storeTimeoutMs)} that the store gives a decision (timeout): ${measured}.`,
          'Look at SLOWLOG GET and the network, or raise timeout of redisStore.',
          data,
        ),
      ]
    }
    return [ok(`Round trip: ${measured}.`, data)]
  },
}
