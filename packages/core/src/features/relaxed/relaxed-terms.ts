import type { Limit, Resolution } from '../../policy/limits/limit.js'
import type { PolicyBasis, PolicyPart } from '../../policy/policy-feature.js'
import type { Algorithm } from '../../store/algorithms.js'
import type { RelaxedTerms } from '../../store/store.js'
import { isOwnUnit } from '../../store/units.js'
import { type Duration, durationMs } from '../../util/duration.js'
import { invalidPolicy, neverBeside, wrongPolicy } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'

/** How closely the processes that share a store agree on counts. */
export interface ConsistencyOptions {
  /**
   * How often each process exchanges its counts with Redis: a duration or ms, 10 ms to a minute and at most the window.
   *
   * In between it decides by itself, without Redis, on keys that it has decided on twice within such a time.
   */
  readonly syncEvery: Duration
}

/** The option of a policy. */
export interface ConsistencyOption {
  /**
   * Lets each process that shares a Redis store count busy keys by itself, and exchange counts every `syncEvery`.
   *
   * Decisions on these keys then do not wait, and several processes together may exceed a limit by a bound. For
   * `fixedWindow` and `slidingWindow`. See docs/fewer-round-trips.md.
   * @default none: Redis makes every decision, exactly
   */
  readonly consistency?: ConsistencyOptions
}

/** @throws SluiceError `INVALID_POLICY` */
export function addRelaxedCounting(
  { where, limits }: PolicyBasis,
  { consistency, sharedTurns }: ConsistencyOption & { readonly sharedTurns?: unknown },
): PolicyPart | undefined {
  if (consistency === undefined) return undefined
  const relaxed = relaxedTerms(where, consistency, limits)
  if (sharedTurns !== undefined && sharedTurns !== false) {
    neverBeside(where, 'consistency', 'sharedTurns', consistency)
  }
  return { terms: () => ({ relaxed }), countAlone: (resolution) => countedInFull(where, resolution, relaxed) }
}

const SHORTEST_MS = 10
const LONGEST_MS = 60_000

const NO_BUCKET =
  'buckets are counted by Redis alone: use slidingWindow or fixedWindow, or in code a lease, which never exceeds the limit'

/** The algorithms that processes do not count by themselves, each with a replacement. */
const INSTEAD: ReadonlyMap<Algorithm, string> = new Map([
  ['gcra', NO_BUCKET],
  ['tokenBucket', NO_BUCKET],
  ['leakyBucket', NO_BUCKET],
  ['slidingLog', 'a log holds each unit: use slidingWindow or fixedWindow, or leave out consistency'],
  ['concurrency', 'permits are held in Redis: put concurrency into a limiter of its own, without consistency'],
])

/** @throws SluiceError `INVALID_POLICY` */
function relaxedTerms(where: string, consistency: ConsistencyOptions, limits: readonly Limit[]): RelaxedTerms {
  if (typeof consistency !== 'object' || consistency === null) {
    invalidPolicy(where, 'consistency', 'an object such as { syncEvery: "100ms" }', consistency)
  }
  knownOptions(`${where}: consistency`, consistency, ['syncEvery'])
  const syncEveryMs = durationMs(`${where}: consistency`, 'syncEvery', consistency.syncEvery)
  if (syncEveryMs < SHORTEST_MS || syncEveryMs > LONGEST_MS) {
    invalidPolicy(`${where}: consistency`, 'syncEvery', '10 ms to 1 minute', syncEveryMs)
  }
  for (const { algorithm, lease, calendar, reserve, unit } of limits) {
    if (calendar) {
      const instead = 'use a window in days such as "30d", or leave out consistency'
      refuse(where, `windows of the calendar are counted by Redis alone: ${instead}`)
    }
    const why = INSTEAD.get(algorithm)
    if (why !== undefined) refuse(where, why)
    if (isOwnUnit(unit)) {
      // Their settlements and meters may charge more than a decision took, which a process would not count before its next exchange.
      refuse(where, `units by name are counted by Redis alone: put limits of ${unit} into a policy without consistency`)
    }
    if (reserve !== undefined)
      refuse(where, 'expected none beside reserve, which Redis alone keeps exactly. Choose one')
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
 * The same limit, counted in full: admissions of all processes together may exceed the limit, and windows go beyond it as where
 * refusals count.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
function countedInFull(where: string, resolution: Resolution, { syncEveryMs }: RelaxedTerms): Resolution {
  const { kind, id, params, report } = resolution
  const { countInFull } = kind
  if (!countInFull)
    refuse(where, `a ${kind.kernel} is not counted by processes alone: use slidingWindow or fixedWindow`)
  if (syncEveryMs > report.windowMs) {
    invalidPolicy(`${where}: consistency`, 'syncEvery', `at most the window of ${report.windowMs} ms`, syncEveryMs)
  }
  return { ...resolution, id: `${id}.relaxed`, params: countInFull(params) }
}

function refuse(where: string, why: string): never {
  wrongPolicy(`${where}: consistency: ${why}`)
}
