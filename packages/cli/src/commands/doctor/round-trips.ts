import { NotPermitted } from '../../redis/redis-failure.js'
import type { Server } from '../../redis/server.js'

export interface RoundTrips {
  /** In ms, in ascending order; at least one. */
  readonly ms: readonly number[]
  /** How far the clock of Redis is ahead of this machine's, in ms; undefined where TIME is not permitted. */
  readonly aheadMs: number | undefined
  /** By how much `aheadMs` may be wrong either way. */
  readonly uncertainMs: number
}

const measured = new WeakMap<Server, Promise<RoundTrips>>()

/**
 * Measures round trips one after the other. TIME is what decisions need anyhow, and returns the clock along with it; what is
 * refused makes its round trip as well.
 */
export function roundTrips(server: Server, count: number): Promise<RoundTrips> {
  let trips = measured.get(server)
  if (!trips) {
    trips = measure(server, count)
    measured.set(server, trips)
  }
  return trips
}

async function measure(server: Server, count: number): Promise<RoundTrips> {
  const all: number[] = []
  let aheadMs: number | undefined
  let least = Number.POSITIVE_INFINITY
  // The first one pays for what is only done once on either side.
  for (let n = -1; n < count; n++) {
    const sentAt = Date.now()
    const start = performance.now()
    const now = await timeOf(server)
    const took = performance.now() - start
    if (n >= 0) all.push(took)
    if (now !== undefined && took < least) {
      least = took
      aheadMs = now - (sentAt + took / 2)
    }
  }
  return { ms: all.sort((a, b) => a - b), aheadMs, uncertainMs: least / 2 + 1 }
}

async function timeOf(server: Server): Promise<number | undefined> {
  try {
    const [seconds, micros] = (await server.call('TIME')) as [string, string]
    return Number(seconds) * 1000 + Number(micros) / 1000
  } catch (error) {
    if (!(error instanceof NotPermitted)) throw error
    return undefined
  }
}
