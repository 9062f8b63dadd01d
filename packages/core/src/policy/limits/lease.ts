import type { LeaseTerms } from '../../store/store.js'
import { waitMs } from '../../util/duration.js'
import { invalidPolicy, wrongPolicy } from '../../util/errors.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import type { LeaseOptions, Resolution } from './limit.js'

/** @throws SluiceError `INVALID_POLICY` */
export function leaseOf(where: string, options: LeaseOptions): LeaseTerms {
  if (typeof options !== 'object' || options === null)
    invalidPolicy(where, 'lease', 'an object such as { size: 10, ttl: "1s" }', options)
  knownOptions(`${where}: lease`, options, ['size', 'ttl'])
  return {
    size: wholeNumber(`${where}: lease`, 'size', options.size, 1),
    ttlMs: waitMs(`${where}: lease`, 'ttl', options.ttl),
  }
}

/**
 * The same limit, tightened so that it holds for the instants at which units are spent. These may lie up to `ttlMs` after the
 * instants at which the units are counted. Below, x is an instant, and d, W and T are durations:
 *
 * - log: units spent in (x, x + W] are counted in (x - T, x + W], so the log counts over W + T.
 * - bucket: units spent in (x, x + d] are counted in (x - T, x + d]. In that time it admits its capacity and the units that
 *   return in d + T, so its capacity is reduced by the units that return in T.
 * - window, and buckets that refill at intervals: nothing changes. Their leases end with the segment or interval that they are
 *   counted in (see features/leases/). Within it, the instant of spending makes no difference: counters and refills stay as
 *   they are, and the weight of an edge only falls.
 *
 * @throws SluiceError `INVALID_POLICY` where that leaves nothing
 */
export function leased(where: string, resolution: Resolution, lease: LeaseTerms): Resolution {
  const { kind, id, carriedId, params, report } = resolution
  const { windowMs } = report
  const { ttlMs } = lease
  if (ttlMs > windowMs) invalidPolicy(`${where}: lease`, 'ttl', `at most the window of ${windowMs} ms`, ttlMs)
  const tightened = kind.lease.tighten(where, params, ttlMs)
  if (!tightened) return { ...resolution, lease }
  const { params: counted, capacity } = tightened
  return {
    ...resolution,
    id: leasedId(id, lease),
    // The reduction of a bucket's capacity depends on its limit.
    carriedId: leasedId(kind.kernel === 'bucket' ? id : carriedId, lease),
    params: counted,
    report: { ...report, capacity },
    lease,
  }
}

/** How long a log counts a unit. */
export function leasedWindow(windowMs: number, lease: LeaseTerms | undefined): number {
  return lease ? windowMs + lease.ttlMs : windowMs
}

/** A limit that counts differently because of its lease gets an id of its own. Otherwise it has the same id. */
export function leasedId(id: string, lease: LeaseTerms | undefined): string {
  return lease ? `${id}.leased.${lease.ttlMs}` : id
}

/** All limits of a policy have an equal lease, or none has one: its units are taken from all of them at once. */
export function checkLeases(
  where: string,
  limits: readonly { readonly lease?: LeaseOptions; readonly unit: string }[],
): void {
  const [first] = limits
  if (limits.every(({ lease }) => lease === undefined)) return
  const texts = limits.map(({ lease }) => lease && JSON.stringify(leaseOf(where, lease)))
  if (texts.some((text) => text !== texts[0])) {
    wrongPolicy(`${where}: lease: expected an equal one for every limit, or none`)
  }
  if (limits.some(({ unit }) => unit !== first?.unit)) {
    wrongPolicy(`${where}: lease: expected limits that all count the same unit`)
  }
}
