import type { Units } from '../policy/costs.js'
import type { ReadablePlan } from '../policy/plan.js'
import { type Identity, identityIn } from '../store/identity.js'
import type { ListReport } from '../store/list.js'
import { type BlockReport, type QuotaUnit, type ResolvedLimit, STRIDE } from '../store/store.js'
import { COPY, THIS_COPY } from '../util/copies.js'
import { isForEver } from '../util/duration.js'
import {
  type Decision,
  identitiesIn,
  isCharged,
  isHeld,
  isOfLimits,
  reportsIn,
  shownLimit,
  type UnitReport,
  unitsIn,
  type VerdictKind,
} from './decision.js'
import { INSPECT, type LimitReport, later, leftOf, queueDelay, spreadFor } from './limit-report.js'
import type { Meter, MeterOptions } from './meter.js'
import { REFUSALS, type RefusalReason } from './refusals.js'

/** The ban that refuses a request. */
export interface BanReport {
  /** The step of the ladder, from 1. */
  readonly rung: number
  /** The number of strikes that started it. */
  readonly strikes: number
  /** Its end: ms since the epoch, by the store's clock. */
  readonly until: number
  /** The reason that `strike` gave, where it started the ban; else ''. */
  readonly reason: string
}

/** A block as verdicts show it. */
export type ShownBlock = Pick<BlockReport, 'reason' | 'remainingMs'>

const Shown = { Verdict: class {} }

/** @internal The decision of a verdict. A symbol hides it, as only this library reads it. */
export const DECISION = Symbol('decision')

/** @internal The verdicts whose charges a verdict changes: itself alone, except where several policies decided one after the other. */
export const PARTS = Symbol('parts')

/** The outcome of one decision. Never changes once handed out. */
export class Verdict {
  static {
    // A promise asks each object that it resolves with for `then`. Found here, the search ends before the prototype of all objects:
    // that takes 4 % less of a decision in memory, and a polluted prototype gets no verdicts.
    Object.defineProperty(Verdict.prototype, 'then', { value: undefined })
  }

  /** Whether this request may proceed. */
  readonly allowed: boolean
  /** The name of the policy that decided. */
  readonly policy: string
  /**
   * `decided` by the store's state; `listed`: by a list, without a request to the store; `unavailable` where the store could not be
   * reached: by this process alone, or by nothing. Where no limit decided there are no `limits`, and
   * `remaining` and `resetAfterMs` are 0.
   */
  readonly kind: VerdictKind
  /** The reason of a refusal; undefined when allowed. `left`: the client left while the request waited, which is no refusal. */
  readonly reason: RefusalReason | undefined
  /**
   * Whole requests that would be admitted right now: the minimum over the limits that count requests. Where none does, the units
   * left of the limit that has the smallest share left.
   */
  readonly remaining: number
  /**
   * Milliseconds until this same cost would be admitted, with no other traffic. 0 when allowed. Undefined when it never will be
   * (`impossible`, or blocked for ever), or when the time is unknown (`denied`). Exact, not a hint, unless the reason
   * is `unavailable`. With `spread`, later by less than that.
   */
  readonly retryAfterMs: number | undefined
  /** Milliseconds until every limit is completely restored: the maximum over the limits. */
  readonly resetAfterMs: number
  /**
   * Milliseconds that an admitted request has to wait for its turn in a queueing limit, else 0. The middleware and `acquire` may
   * exchange turns between the clients that wait.
   */
  readonly delayMs: number
  /** The reason and duration of the block, when `reason` is `blocked`. */
  readonly block: ShownBlock | undefined
  /** The ban, when `reason` is `banned`. */
  readonly ban: BanReport | undefined
  /** The list that decided, when `kind` is `listed`. It allowed or denied the request, and nothing was charged. */
  readonly list: ListReport | undefined
  /** Units charged to the limit of `remaining`; 0 for a peek or a refusal. */
  readonly cost: number
  /** The tier whose limits decided; undefined without tiers. */
  readonly tier: string | undefined
  /** The priority of the request; 0 unless `priority` sets it. */
  readonly priority: number
  /** Whether the handler runs in spite of the refusal, and is to do less than usual: see `degrade`. */
  readonly degraded: boolean
  /** Whether it is not enforced: `enforce: { mode: 'report' }`, or a key outside of `enforce.percent`. */
  readonly reported: boolean
  readonly #decision: Decision

  /**
   * @internal Use `verdictOf`.
   *
   * V8 inlines at most 460 bytes of code, and 920 together: the rest is in functions, or a decision in memory takes 5 % longer.
   */
  constructor(decision: Decision, marks: Marks, { allowed, remaining, retryMs, resetMs, delayMs, cell }: Summary) {
    const { request, result, by } = decision
    this.allowed = allowed
    this.policy = request.plan.policy
    this.kind = by.kind
    this.reason = allowed ? undefined : refusalReason(decision, marks, retryMs < 0)
    this.remaining = remaining
    this.retryAfterMs = retryMs < 0 ? undefined : retryMs
    this.resetAfterMs = resetMs
    this.delayMs = delayMs
    const { block } = result
    this.block = block && shownBlock(block)
    this.ban = block && banReport(result.date ?? result.now, block)
    this.list = by.list
    this.cost = isHeld(decision) ? (request.costs[cell] as number) : 0
    this.tier = by.policy?.tier
    this.priority = by.priority
    this.degraded = marks.degraded === true
    this.reported = marks.reported === true
    this.#decision = decision
  }

  /**
   * One report per limit, in written order; none when blocked, or when nothing could decide.
   * They are made at the first read, so a copy by `{ ...verdict }` lacks them; `toJSON()` has them.
   */
  get limits(): readonly LimitReport[] {
    return reportsIn(this.#decision)
  }

  /**
   * The keys of the request, each once; those of a blocked client too. Not in its JSON nor in copies by
   * `{ ...verdict }`, which may go to clients.
   */
  get keys(): readonly Identity[] {
    return identitiesIn(this.#decision).map(identityIn)
  }

  /**
   * The id of the charge, if the policy has `charges`: an opaque text, by which `settle`, `refund`, `release` and `renew` of the limiter
   * change the charge in any process. Undefined if nothing was charged. Whoever has it can change the charge, so it is neither in
   * its JSON nor in copies by `{ ...verdict }`, which may go to clients.
   */
  get id(): string | undefined {
    return this.#decision.result.id
  }

  /** The charged and the remaining units of each unit that limits count. Made at the first read, as `limits`. */
  get units(): Readonly<Record<string, UnitReport>> {
    return unitsIn(this.#decision, this.allowed && isCharged(this.#decision))
  }

  /** All properties except the keys, as plain data. */
  toJSON(): object {
    return { ...this, limits: this.limits, units: this.units }
  }

  /** @internal The object that `console.log` shows: the same data, under the name of this class. */
  [INSPECT](): object {
    return Object.assign(new Shown.Verdict(), this.toJSON())
  }

  /** @internal */
  get [COPY](): string {
    return THIS_COPY
  }

  /** @internal */
  get [DECISION](): Decision {
    return this.#decision
  }

  /** @internal */
  get [PARTS](): readonly Verdict[] {
    return [this]
  }

  /**
   * Replaces the estimated cost with the actual one, each unit once: the rest is refunded, less the units that time has already
   * restored. A number is of requests, and at most what was charged. Units by name, such as `{ tokens: 640 }`, may exceed that: the
   * difference is charged at once, whatever room there is. Permits stay.
   *
   * The first of `settle` and `refund` counts; the second does nothing.
   * Resolves to whether anything was refunded or charged; false for a refusal.
   *
   * While the store is away nothing is refunded or charged, then or later.
   *
   * @throws SluiceError `INVALID_COST` for a number above the charge, for units that no limit counts, and for permits;
   * `INVALID_POLICY` for units by name beside `consistency`
   */
  async settle(actual: number | Units): Promise<boolean> {
    return this.#decision.by.charges.settle(this.#decision, actual)
  }

  /**
   * A meter that charges units while they are produced, such as the tokens of a stream. It uses up what the request was charged for
   * the unit first. One for each unit of a verdict.
   *
   * @example const meter = req.rateLimit.meter('tokens')
   * @throws SluiceError `INVALID_COST` for a unit that no limit counts, for bytes and permits; `INVALID_POLICY`
   */
  meter(unit: QuotaUnit, options: MeterOptions = {}): Meter {
    const goesOn = this.reported || this.degraded ? 'beyond' : this.allowed
    return this.#decision.by.charges.meter(this.#decision, unit, options, goesOn)
  }
}

/** The verdict of a decision. Nearly every one is the report of its only limit. */
export function verdictOf(decision: Decision, marks: Marks = NO_MARKS): Verdict {
  if (marks !== NO_MARKS || !isReport(decision)) return new Verdict(decision, marks, summaryOf(decision, marks))
  const { allowed, values, offset } = decision.result
  return new Verdict(decision, marks, {
    allowed,
    remaining: values[offset] as number,
    retryMs: values[offset + 1] as number,
    resetMs: values[offset + 2] as number,
    delayMs: 0,
    cell: 0,
  })
}

/** The decision that a verdict shows. */
export function decisionIn(verdict: Verdict): Decision {
  return verdict[DECISION]
}

/** Changes of a request's verdict after its decision. */
export interface Marks {
  readonly degraded: boolean | undefined
  readonly reported: boolean | undefined
  /** The request is refused for at least this many ms, as other requests wait before it. */
  readonly waitMs: number | undefined
  /** The client has left while the request waited. */
  readonly hasLeft: boolean | undefined
  /** The request proceeds in spite of the refusal, so that it is not impossible. */
  readonly isServed: boolean | undefined
}

export const NO_MARKS: Marks = {
  degraded: undefined,
  reported: undefined,
  waitMs: undefined,
  hasLeft: undefined,
  isServed: undefined,
}

/** A marked copy of a verdict, which itself never changes. Both have one charge, which is refunded once. */
export function marked(verdict: Verdict, marks: Partial<Marks>): Verdict {
  return verdictOf(verdict[DECISION], { ...NO_MARKS, ...marks })
}

/** The verdict of a request that is over the limit and still proceeds, slowed down or degraded. */
export function served(verdict: Verdict): Verdict {
  if (verdict.reason !== 'impossible' || verdict.reported) return verdict
  return marked(verdict, { degraded: verdict.degraded, isServed: true })
}

export function banReport(now: number, { ban, reason, remainingMs }: BlockReport): BanReport | undefined {
  return ban && { rung: ban.rung, strikes: ban.strikes, until: now + remainingMs, reason }
}

/** Undefined for a ban. */
function shownBlock(block: BlockReport): ShownBlock | undefined {
  if (block.ban) return undefined
  const { reason, remainingMs } = block
  return { reason, remainingMs: isForEver(remainingMs) ? Number.POSITIVE_INFINITY : remainingMs }
}

/** Whether a client is refused by a list, a block or a ban. No responder admits such a request. */
export function isBarred({ reason }: Verdict): boolean {
  return reason !== undefined && REFUSALS[reason].isBarred
}

/**
 * Whether it is the report of its only limit, as nearly every one: `summaryOf` would add 6 % of CPU to a decision in memory. It
 * asks as little as possible, which takes 5 % less than `isOfLimits`.
 */
function isReport({ request, result, by }: Decision): boolean {
  return (request.plan as ReadablePlan).isSimple && by.kind === 'decided' && !by.reserved && !result.block
}

/** The combined result of all limits. */
interface Summary {
  readonly allowed: boolean
  readonly remaining: number
  /** Negative where the request will never be admitted. */
  readonly retryMs: number
  readonly resetMs: number
  readonly delayMs: number
  /** The cell of the limit that `remaining` is of. */
  readonly cell: number
}

function summaryOf(decision: Decision, marks: Marks): Summary {
  const { request, result, by } = decision
  const { block, values, offset } = result
  const plan = request.plan as ReadablePlan
  // While others wait, a new request is not admitted even if there is room.
  const allowed = result.allowed && marks.waitMs === undefined && !marks.hasLeft
  let retryMs = marks.waitMs ?? result.behindMs ?? 0
  if (!isOfLimits(decision)) {
    const untilMs = block?.remainingMs ?? by.tryAgainMs ?? (allowed ? 0 : Number.POSITIVE_INFINITY)
    retryMs = isForEver(untilMs) ? -1 : Math.max(untilMs, retryMs)
    return { allowed, remaining: 0, retryMs, resetMs: 0, delayMs: 0, cell: 0 }
  }

  const { resolved, positions, cellOf } = plan
  const isCharging = isHeld(decision)
  const shown = shownLimit(decision)
  let remaining = 0
  let [resetMs, delayMs] = [0, 0]
  for (let i = 0; i < resolved.length; i++) {
    const limit = resolved[i] as ResolvedLimit
    const at = offset + (positions[i] as number) * STRIDE
    const cell = cellOf[i] as number
    if (i === shown) remaining = leftOf(values[at] as number, cell, by.reserved)
    const spread = spreadFor(limit, request, cell)
    const retry = later(values[at + 1] as number, spread)
    // One limit without room for ever is enough.
    retryMs = retry < 0 || retryMs < 0 ? -1 : Math.max(retryMs, retry)
    resetMs = Math.max(resetMs, later(values[at + 2] as number, spread))
    // A peek adds nothing to the bucket, so its whole content comes first.
    const charged = isCharging ? (request.costs[cell] as number) : 0
    if (limit.queue && allowed) delayMs = Math.max(delayMs, queueDelay(values[at + 3] as number, charged, limit))
  }
  return { allowed, remaining, retryMs, resetMs, delayMs, cell: cellOf[shown] as number }
}

function refusalReason(
  { result: { block, allowed }, by: { list, tryAgainMs } }: Decision,
  { hasLeft, isServed }: Marks,
  isNever: boolean,
): RefusalReason {
  if (hasLeft) return 'left'
  if (list) return 'denied'
  if (block) return block.ban ? 'banned' : 'blocked'
  if (isNever && !isServed) return 'impossible'
  // The limits have room, but others wait before it.
  return tryAgainMs === undefined || allowed ? 'limited' : 'unavailable'
}
