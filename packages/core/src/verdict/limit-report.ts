import type { ReadablePlan } from '../policy/plan.js'
import { type Identity, identityIn } from '../store/identity.js'
import {
  type Cell,
  type QuotaUnit,
  type ResolvedLimit,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { shareOf } from '../util/hash.js'

export const INSPECT = Symbol.for('nodejs.util.inspect.custom')

/** The report of one limit. */
export interface LimitReport {
  /** The name given to the limit; else the policy's name, followed by the window where a policy has several limits. */
  readonly name: string
  /** The factory that makes such limits, such as `'slidingLog'`. */
  readonly algorithm: string
  /** Units in `windowMs`; for `concurrency` the maximum of permits. */
  readonly limit: number
  /** Milliseconds; for `concurrency` its `ttl`, the time that a permit is held without renewal. */
  readonly windowMs: number
  /** Maximum of units that can be admitted at one instant. */
  readonly capacity: number
  /** The unit that it counts. */
  readonly unit: QuotaUnit
  /** Whether this limit had room; a request is allowed where all have. */
  readonly allowed: boolean
  /** Whole units that would be admitted right now. With limit 10 and 6 spent: 4. */
  readonly remaining: number
  /** Milliseconds until this limit would admit the same cost; 0 when it does; undefined when it never will. */
  readonly retryAfterMs: number | undefined
  /** Milliseconds until the limit is completely restored. */
  readonly resetAfterMs: number
  /** The identity that was charged. Not in copies by `{ ...report }` and JSON, which may go to clients. */
  readonly key: Identity
}

/** A report whose key is computed when it is read. */
class Report implements LimitReport {
  readonly name: string
  readonly algorithm: string
  readonly limit: number
  readonly windowMs: number
  readonly capacity: number
  readonly unit: QuotaUnit
  readonly allowed: boolean
  readonly remaining: number
  readonly retryAfterMs: number | undefined
  readonly resetAfterMs: number
  readonly #identity: string

  constructor(
    { name, algorithm, limit, windowMs, capacity, unit }: ResolvedLimit,
    remaining: number,
    retryMs: number,
    resetMs: number,
    identity: string,
  ) {
    this.name = name
    this.algorithm = algorithm
    this.limit = limit
    this.windowMs = windowMs
    this.capacity = capacity
    this.unit = unit
    this.allowed = retryMs === 0
    this.remaining = remaining
    this.retryAfterMs = retryMs < 0 ? undefined : retryMs
    this.resetAfterMs = resetMs
    this.#identity = identity
  }

  get key(): Identity {
    return identityIn(this.#identity)
  }

  /** The object that `console.log` shows. */
  [INSPECT](): object {
    return { ...this, key: this.key }
  }
}

/** The index of the limit with the longest refusal; -1 if none refuses. Never is longest, and the first wins a tie. */
export function longestRefusal(limits: readonly LimitReport[]): number {
  let longest = -1
  let found = -1
  for (let i = 0; i < limits.length; i++) {
    const { allowed, retryAfterMs = Number.POSITIVE_INFINITY } = limits[i] as LimitReport
    if (allowed || retryAfterMs <= longest) continue
    longest = retryAfterMs
    found = i
  }
  return found
}

/** The remaining units for this request, without those reserved for higher priorities. */
export function leftOf(remaining: number, cell: number, reserved: readonly number[] | undefined): number {
  return reserved ? Math.max(0, remaining - (reserved[cell] as number)) : remaining
}

/** The time in ms that `spread` adds to the wait of this identity: always the same for one identity. */
export function spreadFor({ spreadMs }: ResolvedLimit, { plan, identities }: StoreRequest, cell: number): number {
  if (spreadMs === undefined) return 0
  const identity = identities[(plan.cells[cell] as Cell).identity] as string
  return Math.floor(shareOf(`${plan.policy}\n${identity}`) * spreadMs)
}

/** A wait in ms with the spread added; 0 (now) and below (never) stay as they are. */
export function later(ms: number, spread: number): number {
  return ms > 0 ? ms + spread : ms
}

/** The used fraction of a limit without `units`: the same quotient for the same units, however they were reached. */
export function useWithout({ plan }: StoreRequest, { values, offset }: StoreResult, i: number, units: number): number {
  const { resolved, positions } = plan as ReadablePlan
  const { capacity } = resolved[i] as ResolvedLimit
  const used = capacity - (values[offset + (positions[i] as number) * STRIDE] as number) - units
  if (capacity > 0) return used / capacity
  return units < 0 ? Number.POSITIVE_INFINITY : 1
}

export function unitsOf(units: readonly number[], { plan }: StoreRequest, i: number): number {
  return units[(plan as ReadablePlan).cellOf[i] as number] as number
}

/** The report of each limit, in written order. */
export function reportsOf(
  request: StoreRequest,
  { values, offset }: StoreResult,
  reserved: readonly number[] | undefined,
): readonly LimitReport[] {
  const { plan, identities } = request
  const { cells, resolved, positions, cellOf } = plan as ReadablePlan
  return resolved.map((limit, i) => {
    const at = offset + (positions[i] as number) * STRIDE
    const cell = cellOf[i] as number
    const remaining = leftOf(values[at] as number, cell, reserved)
    const identity = identities[(cells[cell] as Cell).identity] as string
    const spread = spreadFor(limit, request, cell)
    const [retryMs, resetMs] = [later(values[at + 1] as number, spread), later(values[at + 2] as number, spread)]
    return new Report(limit, remaining, retryMs, resetMs, identity)
  })
}

/** The wait in a queueing limit: a request leaves when the earlier content of the bucket has leaked out. */
export function queueDelay(debt: number, cost: number, limit: { limit: number; windowMs: number }): number {
  const ahead = debt - cost * limit.windowMs
  return ahead > 0 ? Math.ceil(ahead / limit.limit) : 0
}
