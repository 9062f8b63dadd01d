import { CELL_KINDS } from '../../store/cell-kinds.js'
import type { RelaxedTerms } from '../../store/store.js'
import { type Duration, durationMs } from '../../util/duration.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { exactProduct, knownOptions } from '../../util/validate.js'
import type { Limit, Resolution } from './limit.js'

/** How closely the processes that share a store agree on what is counted. */
export interface ConsistencyOptions {
  /**
   * How often each process exchanges its counts with Redis: a duration or ms, 10 ms to a minute and at most the window. In
   * between it decides by itself, without asking, on keys that it was asked for twice within such a time.
   */
  readonly syncEvery: Duration
}

const SHORTEST_MS = 10
const LONGEST_MS = 60_000

/** @throws SluiceError `INVALID_POLICY` */
export function relaxedTerms(where: string, consistency: ConsistencyOptions, limits: readonly Limit[]): RelaxedTerms {
  if (typeof consistency !== 'object' || consistency === null) {
    invalidPolicy(where, 'consistency', 'an object such as { syncEvery: "100ms" }', consistency)
  }
  knownOptions(`${where}: consistency`, consistency, ['syncEvery'])
  const syncEveryMs = durationMs(`${where}: consistency`, 'syncEvery', consistency.syncEvery)
  if (syncEveryMs < SHORTEST_MS || syncEveryMs > LONGEST_MS) {
    invalidPolicy(`${where}: consistency`, 'syncEvery', '10 ms to 1 minute', syncEveryMs)
  }
  for (const { algorithm, lease } of limits) {
    if (algorithm === 'slidingLog') {
      refuse(where, 'a log holds each unit: use slidingWindow, fixedWindow or a bucket, or leave out consistency')
    }
    if (algorithm === 'concurrency') {
      refuse(where, 'permits are held in Redis: put concurrency into a limiter of its own, without consistency')
    }
    if (lease !== undefined) {
      refuse(
        where,
        'expected none beside lease: leases never exceed the limit, relaxed counts of busy keys never wait. Choose one',
      )
    }
  }
  return Object.freeze({ syncEveryMs })
}

/**
 * The same limit, counted in full: what processes have admitted by themselves may together be more than the limit. Windows go
 * beyond it as where refusals count. Buckets hold as much more as comes back in a window: their clients pay it off, and are
 * locked out for no longer than that.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function countedInFull(where: string, resolution: Resolution, { syncEveryMs }: RelaxedTerms): Resolution {
  const { kernel, id, params, report } = resolution
  const { countInFull } = CELL_KINDS[kernel]
  if (!countInFull)
    refuse(where, `a ${kernel} is not counted by processes alone: use slidingWindow, fixedWindow or a bucket`)
  if (syncEveryMs > report.windowMs) {
    invalidPolicy(`${where}: consistency`, 'syncEvery', `at most the window of ${report.windowMs} ms`, syncEveryMs)
  }
  if (report.queue) refuse(where, 'expected none beside queue: Redis gives out the turns, one after the other')
  if (kernel === 'bucket') exactProduct(where, 'consistency', report.limit + report.capacity, report.windowMs)
  return { ...resolution, id: `${id}.relaxed`, params: countInFull(params) }
}

function refuse(where: string, why: string): never {
  throw new SluiceError('INVALID_POLICY', `${where}: consistency: ${why}`)
}
