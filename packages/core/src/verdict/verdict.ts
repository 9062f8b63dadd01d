import type { ReadablePlan } from '../policy/plan.js'
import { type Identity, identityIn } from '../store/identity.js'
import type { ListReport } from '../store/list.js'
import { type BlockReport, type ResolvedLimit, STRIDE } from '../store/store.js'
import { isForEver } from '../util/duration.js'
import {
  checkActualCost,
  type Decision,
  identitiesIn,
  isCharged,
  isHeld,
  isOfLimits,
  reportsIn,
  type VerdictKind,
} from './decision.js'
import { INSPECT, type LimitReport, later, leftOf, queueDelay, spreadFor } from './limit-report.js'

/**
 * Why a request is refused: over a limit, never admissible at this cost, on a deny list, blocked by hand, banned for its
 * strikes, or because nothing could decide.
 */
export type RefusalReason = 'limited' | 'impossible' | 'denied' | 'blocked' | 'banned' | 'unavailable' | 'left'

/** The ban that refuses a request. */
export interface BanReport {
  /** Which step of the ladder it is, from 1. */
  readonly rung: number
  /** How many strikes started it. */
  readonly strikes: number
  /** When it ends: ms since the epoch, by the store's clock. */
  readonly until: number
  /** Of the strike that started it, where `strike` gave one; else ''. */
  readonly reason: string
}

const Shown = { Verdict: class {} }

/** @internal Of a verdict: its decision. Under a symbol, as it is for the rest of the library alone. */
export const DECISION = Symbol('decision')

/** The outcome of one decision. Never changes once handed out. */
export class Verdict {
  /** Whether this request may proceed. */
  readonly allowed: boolean
  /** The name of the policy that decided. */
  readonly policy: string
  /**
   * `decided` by the store's state; `listed`: by a list, without asking the store; `unavailable` where that could not be
   * reached: by what this process knows alone, or by nothing. Where no limit was asked there are no `limits`, and
   * `remaining` and `resetAfterMs` are 0.
   */
  readonly kind: VerdictKind
  /** Why it may not; undefined when it may. `left`: the client left while the request waited, so that it was not refused. */
  readonly reason: RefusalReason | undefined
  /** Whole units that every limit would admit right now: the least over the limits. */
  readonly remaining: number
  /**
   * Milliseconds until this same cost would be admitted, with no other traffic; 0 when allowed;
   * undefined when it never will be (`impossible`, or blocked for ever), or nothing says when (`denied`). Exact, not a hint, unless the reason
   * is `unavailable`; with `spread` later, by less than that.
   */
  readonly retryAfterMs: number | undefined
  /** Milliseconds until every limit is as good as new: the most over the limits. */
  readonly resetAfterMs: number
  /**
   * Milliseconds an admitted request has to wait for its turn in a queueing limit, else 0. The middleware and `acquire` may exchange turns
   * between the clients that wait.
   */
  readonly delayMs: number
  /** Why and how long, when `reason` is `blocked`. */
  readonly block: BlockReport | undefined
  /** Which ban, when `reason` is `banned`. */
  readonly ban: BanReport | undefined
  /** Which list decided, when `kind` is `listed`: it allowed or denied the request, and nothing was charged. */
  readonly list: ListReport | undefined
  /** Units charged to each limit that counts requests or permits; 0 for a peek or a refusal. */
  readonly cost: number
  /** The tier whose limits decided; undefined without tiers. */
  readonly tier: string | undefined
  /** What the request was decided with; 0 unless `priority` says otherwise. */
  readonly priority: number
  /** Whether the handler runs although this was refused, and is to do less than usual: see `degrade`. */
  readonly degraded: boolean
  /** Whether it is not enforced: `enforce: { mode: 'report' }`, or a key that `enforce.percent` leaves out. */
  readonly reported: boolean
  readonly #decision: Decision

  /** @internal */
  constructor(decision: Decision, marks: Marks = NO_MARKS) {
    const { request, result, by } = decision
    const plan = request.plan as ReadablePlan
    let { allowed } = result
    let remaining: number
    let retryMs: number
    let resetMs: number
    let delayMs = 0
    // Nearly every verdict is the report of its only limit: by `summaryOf` a decision in memory takes 6 % more CPU.
    if (plan.isSimple && marks === NO_MARKS && !by.kept && isOfLimits(decision)) {
      const { values, offset } = result
      remaining = values[offset] as number
      retryMs = values[offset + 1] as number
      resetMs = values[offset + 2] as number
    } else ({ allowed, remaining, retryMs, resetMs, delayMs } = summaryOf(decision, marks))
    this.allowed = allowed
    this.policy = request.plan.policy
    this.kind = by.kind
    this.reason = allowed ? undefined : refusalReason(decision, marks, retryMs < 0)
    this.remaining = remaining
    this.retryAfterMs = retryMs < 0 ? undefined : retryMs
    this.resetAfterMs = resetMs
    this.delayMs = delayMs
    const { block } = result
    this.block = block?.ban ? undefined : block && shownBlock(block)
    this.ban = block?.ban && banReport(result.now, block)
    this.list = by.list
    this.cost = isHeld(decision) ? by.cost : 0
    this.tier = by.tier
    this.priority = by.priority
    this.degraded = marks.degraded === true
    this.reported = marks.reported === true
    this.#decision = decision
  }

  /**
   * One report per limit, in the order they were written; none when blocked, or when nothing could decide.
   * They are made when first asked for, so a copy by `{ ...verdict }` is without them; `toJSON()` is with them.
   */
  get limits(): readonly LimitReport[] {
    return reportsIn(this.#decision)
  }

  /**
   * The keys that it was given for, each once; those of a blocked client, too. Not in its JSON nor in copies by
   * `{ ...verdict }`, which may go to clients.
   */
  get keys(): readonly Identity[] {
    return identitiesIn(this.#decision).map(identityIn)
  }

  /** Everything but the keys, as plain data. */
  toJSON(): object {
    return { ...this, limits: this.limits }
  }

  /** @internal What `console.log` shows: the same, under the name of this class. */
  [INSPECT](): object {
    return Object.assign(new Shown.Verdict(), this.toJSON())
  }

  /** @internal */
  get [DECISION](): Decision {
    return this.#decision
  }

  /**
   * Replaces the estimated cost with the actual one, once: the rest is refunded, less what time has restored already.
   * The first of `settle` and `refund` counts, the second does nothing.
   * Resolves to whether anything was refunded; for a refusal that is false.
   *
   * While the store is away nothing is, now or later.
   *
   * @throws SluiceError `INVALID_COST` for more than was charged
   */
  async settle(actualCost: number): Promise<boolean> {
    const decision = this.#decision
    if (isCharged(decision)) return decision.by.charges.settle(decision, actualCost, this.cost)
    checkActualCost('settle', actualCost, maxToSettle(this))
    return false
  }
}

/** What was charged; undefined where nothing was, because it was refused or nothing could decide. */
export function maxToSettle({ allowed, cost, [DECISION]: decision }: Verdict): number | undefined {
  return isCharged(decision) || (allowed && decision.by.store !== undefined) ? cost : undefined
}

/** What happened to a request after its decision. */
export interface Marks {
  readonly degraded?: boolean
  readonly reported?: boolean
  /** Refused for at least this many ms, as other requests wait before it. */
  readonly waitMs?: number
  /** The client has left while the request waited. */
  readonly hasLeft?: boolean
  /** It proceeds all the same, so that it is not impossible. */
  readonly isServed?: boolean
}

const NO_MARKS: Marks = {}

/** The same verdict, marked: one that was handed out never changes. Both are of one charge, which is refunded once. */
export function marked(verdict: Verdict, marks: Marks): Verdict {
  return new Verdict(verdict[DECISION], marks)
}

/** The verdict of a request that is over the limit and proceeds all the same, slowed down or degraded. */
export function served(verdict: Verdict): Verdict {
  if (verdict.reason !== 'impossible' || verdict.reported) return verdict
  return marked(verdict, { degraded: verdict.degraded, isServed: true })
}

export function banReport(now: number, { ban, reason, remainingMs }: BlockReport): BanReport | undefined {
  return ban && { rung: ban.rung, strikes: ban.strikes, until: now + remainingMs, reason }
}

function shownBlock(block: BlockReport): BlockReport {
  return isForEver(block.remainingMs) ? { ...block, remainingMs: Number.POSITIVE_INFINITY } : block
}

/** Whether a client is refused whatever its limits say: nothing lets such a request through. */
export function isBarred({ reason }: Verdict): boolean {
  return reason === 'blocked' || reason === 'banned' || reason === 'denied'
}

/** What all limits say together. */
interface Summary {
  readonly allowed: boolean
  readonly remaining: number
  /** Negative where the request will never be admitted. */
  readonly retryMs: number
  readonly resetMs: number
  readonly delayMs: number
}

function summaryOf(decision: Decision, marks: Marks): Summary {
  const { request, result, by } = decision
  const { block, values, offset } = result
  const plan = request.plan as ReadablePlan
  // While others wait, a new request is not admitted, whatever room there is.
  const allowed = result.allowed && marks.waitMs === undefined && !marks.hasLeft
  let retryMs = marks.waitMs ?? result.behindMs ?? 0
  if (!isOfLimits(decision)) {
    const untilMs = block?.remainingMs ?? by.tryAgainMs ?? (allowed ? 0 : Number.POSITIVE_INFINITY)
    retryMs = isForEver(untilMs) ? -1 : Math.max(untilMs, retryMs)
    return { allowed, remaining: 0, retryMs, resetMs: 0, delayMs: 0 }
  }

  const { resolved, positions, cellOf } = plan
  const isCharging = isHeld(decision)
  let remaining = Number.MAX_SAFE_INTEGER
  let [resetMs, delayMs] = [0, 0]
  let hasUnits = false
  for (let i = 0; i < resolved.length; i++) {
    const limit = resolved[i] as ResolvedLimit
    const at = offset + (positions[i] as number) * STRIDE
    const cell = cellOf[i] as number
    const left = leftOf(values[at] as number, cell, by.kept)
    const spread = spreadFor(limit, request, cell)
    const retry = later(values[at + 1] as number, spread)
    // Bytes are no units of cost: `remaining` shows them only where no limit counts requests.
    const isUnits = limit.unit !== 'content-bytes' && limit.unit !== 'response-bytes'
    if (isUnits && !hasUnits) {
      hasUnits = true
      remaining = left
    } else if (isUnits === hasUnits && left < remaining) remaining = left
    // One limit that never has room is enough.
    retryMs = retry < 0 || retryMs < 0 ? -1 : Math.max(retryMs, retry)
    resetMs = Math.max(resetMs, later(values[at + 2] as number, spread))
    // A peek put nothing into the bucket, so all that is in it comes first.
    const own = isCharging ? (request.costs[cell] as number) : 0
    if (limit.queue && allowed) delayMs = Math.max(delayMs, queueDelay(values[at + 3] as number, own, limit))
  }
  return { allowed, remaining, retryMs, resetMs, delayMs }
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
