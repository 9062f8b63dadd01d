import { getOrInsert } from '@sluice/core/internal'
import { NotPermitted } from '../../redis/redis-failure.js'
import type { Server } from '../../redis/server.js'

export interface RoundTrips {
  /** In ms, in ascending order; at least one. */
  readonly ms: readonly number[]
  /** The lead of Redis's clock over this machine's, in ms. Undefined if TIME is not permitted. */
  readonly aheadMs: number | undefined
  /** The error of `aheadMs`, either way. */
  readonly uncertainMs: number
}

const measured = new WeakMap<Server, Promise<RoundTrips>>()

/**
 * Measures round trips one after the other. Decisions need TIME anyhow, and it returns the clock as well. A refused command
 * makes its round trip, too.
 */
export function roundTrips(server: Server, count: number): Promise<RoundTrips> {
  return getOrInsert(measured, server, () => measure(server, count))
}

async function measure(server: Server, count: number): Promise<RoundTrips> {
  const all: number[] = []
  let aheadMs: number | undefined
  let least = Number.POSITIVE_INFINITY
  // The first one includes work that either side does only once.
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
