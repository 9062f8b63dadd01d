import { SluiceError, show } from './errors.js'
import type { Limit } from './limits/limit.js'
import type { ReadablePlan } from './policy.js'
import {
  type Answer,
  type Ask,
  type BlockReport,
  type Cell,
  PEEK,
  type QuotaUnit,
  STRIDE,
  type Store,
} from './store.js'

/** Why a request is refused: over a limit, never admissible at this cost, blocked by hand, or because nothing could decide. */
export type RefusalReason = 'limited' | 'impossible' | 'blocked' | 'unavailable'

/** What one limit said. */
export interface LimitReport {
  readonly name: string
  readonly algorithm: string
  readonly limit: number
  readonly windowMs: number
  /** Most units that can be admitted at one instant. */
  readonly capacity: number
  /** What it counts. */
  readonly unit: QuotaUnit
  /** Whether this limit had room; a request is allowed where all have. */
  readonly allowed: boolean
  /** Whole units that would be admitted right now. With limit 10 and 6 spent: 4. */
  readonly remaining: number
  /** Milliseconds until this limit would admit the same cost; 0 when it does; undefined when it never will. */
  readonly retryAfterMs: number | undefined
  /** Milliseconds until the limit is as good as new. */
  readonly resetAfterMs: number
}

/** Whether the store's state decided. */
export type VerdictKind = 'decided' | 'unavailable'

/** The outcome of one decision. Never changes once handed out. */
export class Verdict {
  /** Whether this request may proceed. */
  readonly allowed: boolean
  /**
   * `decided` by the store's state; `unavailable` where that could not be reached: by what this process knows
   * alone, or by nothing, and then there are no `limits`, and `remaining` and `resetAfterMs` are 0.
   */
  readonly kind: VerdictKind
  /** Why it may not; undefined when it may. */
  readonly reason: RefusalReason | undefined
  /** Whole units that every limit would admit right now: the least over the limits. */
  readonly remaining: number
  /**
   * Milliseconds until this same cost would be admitted, with no other traffic; 0 when allowed;
   * undefined when it never will be (`impossible`). Exact, not a hint, unless the reason is `unavailable`.
   */
  readonly retryAfterMs: number | undefined
  /** Milliseconds until every limit is as good as new: the most over the limits. */
  readonly resetAfterMs: number
  /** Milliseconds an admitted request has to wait for its turn in a queueing limit, else 0. */
  readonly delayMs: number
  /** One report per limit, in the order they were written; none when blocked, or when nothing could decide. */
  readonly limits: readonly LimitReport[]
  /** Why and how long, when `reason` is `blocked`. */
  readonly block: BlockReport | undefined
  /** Units charged to each limit that counts requests or places; 0 for a peek or a refusal. */
  readonly cost: number
  /** The tier whose limits decided; undefined without tiers. */
  readonly tier: string | undefined
  /** What the request was decided with; 0 unless `priority` says otherwise. */
  readonly priority: number
  /** Whether the handler runs although this was refused, and is to do less than usual: see `degrade`. */
  readonly degraded: boolean
  /** Whether nobody acts on it: `mode: 'report'`, or a key that `enforcePercent` leaves out. */
  readonly reported: boolean
  readonly #ask: Ask
  readonly #answer: Answer
  readonly #from: DecidedBy
  #charge: Charge | undefined

  /** @internal */
  constructor(
    plan: ReadablePlan,
    ask: Ask,
    answer: Answer,
    charged: boolean,
    from: DecidedBy,
    marks: Marks = NO_MARKS,
  ) {
    const { block, values, offset } = answer
    // Behind a line nobody is admitted, whatever room there is.
    const allowed = answer.allowed && marks.waitMs === undefined
    let remaining = Number.MAX_SAFE_INTEGER
    let retryAfterMs = 0
    let resetAfterMs = 0
    let delayMs = 0
    let impossible = false
    let limits: LimitReport[] = []
    const { costs } = ask
    let hasUnits = false

    if (block) {
      remaining = 0
      retryAfterMs = block.remainingMs
    } else if (from.tryAgainMs !== undefined) {
      remaining = 0
      retryAfterMs = from.tryAgainMs
    } else {
      limits = new Array(plan.resolved.length)
      for (let i = 0; i < plan.resolved.length; i++) {
        const limit = plan.resolved[i] as ReadablePlan['resolved'][number]
        const at = offset + (plan.positions[i] as number) * STRIDE
        const cell = plan.cellOf[i] as number
        const cost = costs[cell] as number
        // What is kept for others is not there for this request.
        const left = from.kept
          ? Math.max(0, (values[at] as number) - (from.kept[cell] as number))
          : (values[at] as number)
        const retry = values[at + 1] as number
        const reset = values[at + 2] as number
        // Bytes are no units of cost: they are told where there is nothing else.
        const isUnits = limit.unit !== 'content-bytes'
        if (isUnits && !hasUnits) {
          hasUnits = true
          remaining = left
        } else if (isUnits === hasUnits && left < remaining) remaining = left
        if (retry > retryAfterMs) retryAfterMs = retry
        else if (retry < 0) impossible = true
        if (reset > resetAfterMs) resetAfterMs = reset
        // A peek put nothing into the bucket, so all that is in it comes first.
        const own = charged ? cost : 0
        if (limit.queue && allowed) delayMs = Math.max(delayMs, turnAfter(values[at + 3] as number, own, limit))
        limits[i] = {
          name: limit.name,
          algorithm: limit.algorithm,
          limit: limit.limit,
          windowMs: limit.windowMs,
          capacity: limit.capacity,
          unit: limit.unit,
          allowed: retry === 0,
          remaining: left,
          retryAfterMs: retry < 0 ? undefined : retry,
          resetAfterMs: reset,
        }
      }
    }

    this.allowed = allowed
    this.kind = from.kind
    this.reason = allowed ? undefined : refusalReason(answer, impossible, from)
    this.remaining = remaining
    this.retryAfterMs = impossible ? undefined : Math.max(retryAfterMs, marks.waitMs ?? 0)
    this.resetAfterMs = resetAfterMs
    this.delayMs = delayMs
    this.limits = limits
    this.block = block
    this.cost = charged ? from.cost : 0
    this.tier = from.tier
    this.priority = from.priority
    this.degraded = marks.degraded === true
    this.reported = marks.reported === true
    this.#ask = ask
    this.#answer = answer
    this.#from = from
    this.#charge = charged
      ? { ask, answer, limiter: from.limiter, store: from.store as Store, refunded: false, settled: 0 }
      : undefined
  }

  /**
   * Settles for what the request turned out to cost, once: the rest is given back, as far as time has not
   * given it back already. The first of settling and refunding counts, the second does nothing.
   * Resolves to whether anything was given back; of a refusal there is nothing.
   *
   * While the store is away nothing is, now or later.
   *
   * @throws SluiceError `INVALID_COST` for more than was charged
   */
  async settle(actualCost: number): Promise<boolean> {
    if (this.#charge) return this.#charge.limiter.settle(this, actualCost)
    checkActualCost('settle', actualCost, Verdict.mostToSettle(this))
    return false
  }

  /** @internal The verdict that a store's answer is: an allowed ask has charged, unless it was a peek. */
  static of(ask: Ask, answer: Answer, from: DecidedBy): Verdict {
    return new Verdict(ask.plan as ReadablePlan, ask, answer, answer.allowed && ask.op !== PEEK, from)
  }

  /** @internal What a refund or release needs; undefined where nothing was charged. */
  static chargeOf(verdict: Verdict): Charge | undefined {
    return verdict.#charge
  }

  /** @internal What was charged; anything where nothing was, because it was refused or nothing could decide. */
  static mostToSettle(verdict: Verdict): number {
    const isDecided = verdict.#from.store !== undefined
    return verdict.#charge || (verdict.allowed && isDecided) ? verdict.cost : Number.MAX_SAFE_INTEGER
  }

  /** @internal The limits that decided, as they were made, in the order of `limits`. */
  static definitionsOf(verdict: Verdict): readonly Limit[] {
    return (verdict.#ask.plan as ReadablePlan).definitions
  }

  /** @internal The keys it was given for, as one text. */
  static keyOf(verdict: Verdict): string {
    return verdict.#ask.identities.join('\n')
  }

  /** @internal The same verdict, marked: one that was handed out never changes. Both share one charge, given back once. */
  static marked(verdict: Verdict, marks: Marks): Verdict {
    const charge = verdict.#charge
    const plan = verdict.#ask.plan as ReadablePlan
    const isCharged = charge !== undefined && !charge.refunded
    const copy = new Verdict(plan, verdict.#ask, verdict.#answer, isCharged, verdict.#from, marks)
    copy.#charge = charge
    return copy
  }

  /** @internal What was decided on, each once. */
  static identitiesOf(verdict: Verdict): readonly string[] {
    const { identities } = verdict.#ask
    return identities.length === 1 ? identities : [...new Set(identities)]
  }

  /** @internal The identities on which a limit had no room, each once. */
  static refusingIdentities(verdict: Verdict): readonly string[] {
    const { plan, identities } = verdict.#ask
    const { cells, cellOf } = plan as ReadablePlan
    const refusing = new Set<string>()
    for (const [i, { allowed }] of verdict.limits.entries()) {
      const { identity } = cells[cellOf[i] as number] as Cell
      if (!allowed) refusing.add(identities[identity] as string)
    }
    return [...refusing]
  }
}

/** @internal What a verdict knows of the decision beside the store's answer. */
export interface DecidedBy {
  readonly limiter: { settle(verdict: Verdict, actualCost: number): Promise<boolean> }
  readonly kind: VerdictKind
  /** What was charged is given back to it; undefined where none decided. */
  readonly store: Store | undefined
  /** Where none decided: milliseconds after which to ask again, 0 if it was let through. */
  readonly tryAgainMs?: number
  readonly cost: number
  readonly tier: string | undefined
  readonly priority: number
  /** Units per cell that are kept for higher priorities. */
  readonly kept: readonly number[] | undefined
}

/** @internal What the way of a request adds to what the store has said. */
export interface Marks {
  readonly degraded?: boolean
  readonly reported?: boolean
  /** Refused for this many ms at least, as others are first. */
  readonly waitMs?: number
}

const NO_MARKS: Marks = {}

/** @internal */
export interface Charge extends Pick<DecidedBy, 'limiter'> {
  readonly store: Store
  readonly ask: Ask
  readonly answer: Answer
  /** Set by the first refund, so that there is no second. */
  refunded: boolean
  /** Which cells have been settled, so that they are not again: the sum of `SETTLED_COST` and `SETTLED_BYTES`. */
  settled: number
}

/** @internal */
export const SETTLED_COST = 1
/** @internal */
export const SETTLED_BYTES = 2

/** @internal @throws SluiceError `INVALID_COST` */
export function checkActualCost(where: string, actualCost: unknown, charged: number): void {
  if (Number.isSafeInteger(actualCost) && (actualCost as number) >= 0 && (actualCost as number) <= charged) return
  const range = charged === Number.MAX_SAFE_INTEGER ? 'of at least 0' : `from 0 to the ${charged} charged`
  throw new SluiceError(
    'INVALID_COST',
    `${where}: actual cost: expected a whole number ${range}, got ${show(actualCost)}`,
  )
}

function refusalReason({ block, allowed }: Answer, impossible: boolean, { tryAgainMs }: DecidedBy): RefusalReason {
  if (block) return 'blocked'
  if (impossible) return 'impossible'
  // Let through, but behind others in a line.
  return tryAgainMs === undefined || allowed ? 'limited' : 'unavailable'
}

/** In a queueing limit a request leaves when what was in the bucket before it has leaked out. */
function turnAfter(debt: number, cost: number, limit: { limit: number; windowMs: number }): number {
  const ahead = debt - cost * limit.windowMs
  return ahead > 0 ? Math.ceil(ahead / limit.limit) : 0
}
