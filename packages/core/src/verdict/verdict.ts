import type { Limit } from '../policy/limits/limit.js'
import type { ReadablePlan } from '../policy/plan.js'
import { type Identity, identityIn } from '../store/identity.js'
import type { ListReport } from '../store/list.js'
import {
  type BlockReport,
  type Cell,
  PEEK,
  type Plan,
  type ResolvedLimit,
  STRIDE,
  type Store,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { isForEver } from '../util/duration.js'
import { SluiceError, show } from '../util/errors.js'
import {
  INSPECT,
  type LimitReport,
  later,
  leftOf,
  queueDelay,
  reportsOf,
  spreadFor,
  unitsOf,
  useWithout,
} from './limit-report.js'

/**
 * Why a request is refused: over a limit, never admissible at this cost, on a deny list, blocked by hand, banned for its
 * strikes, or because nothing could decide.
 */
export type RefusalReason = 'limited' | 'impossible' | 'denied' | 'blocked' | 'banned' | 'unavailable' | 'left'

/**
 * What decided: the store's state; a refusal of a moment ago that this process repeats; units that it had taken ahead; this
 * process alone, while the store was away (`local`), or the blocks that it holds meanwhile (`mirror`); a list;
 * bytes of a response under way, which went beyond a limit of `response-bytes`.
 */
export type DecisionSource = 'store' | 'deny-cache' | 'lease' | 'relaxed' | 'local' | 'mirror' | 'list' | 'response'

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

/** What decided: the store's state, a list, or, while the store is away, this process alone or nothing. */
export type VerdictKind = 'decided' | 'listed' | 'unavailable'

const Shown = { Verdict: class {} }

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
  /** Whether it is not enforced: `mode: 'report'`, or a key that `enforcePercent` leaves out. */
  readonly reported: boolean
  readonly #request: StoreRequest
  readonly #result: StoreResult
  readonly #from: DecidedBy
  readonly #isCharged: boolean
  #charge: Charge | undefined
  #limits: readonly LimitReport[] | undefined

  /** @internal Use `Verdict.of`. What all limits say together; `retryMs` is negative where it will never be admitted. */
  constructor(
    request: StoreRequest,
    result: StoreResult,
    from: DecidedBy,
    charged: boolean,
    allowed: boolean,
    remaining: number,
    retryMs: number,
    resetMs: number,
    delayMs: number,
    marks: Marks = NO_MARKS,
  ) {
    this.allowed = allowed
    this.policy = request.plan.policy
    this.kind = from.kind
    this.reason = allowed
      ? undefined
      : marks.hasLeft
        ? 'left'
        : refusalReason(result, retryMs < 0 && !marks.isServed, from)
    this.remaining = remaining
    this.retryAfterMs = retryMs < 0 ? undefined : retryMs
    this.resetAfterMs = resetMs
    this.delayMs = delayMs
    const { block } = result
    this.block = block?.ban ? undefined : block && shownBlock(block)
    this.ban = block?.ban && banReport(result.now, block)
    this.list = from.list
    this.cost = charged ? from.cost : 0
    this.tier = from.tier
    this.priority = from.priority
    this.degraded = marks.degraded === true
    this.reported = marks.reported === true
    this.#request = request
    this.#result = result
    this.#from = from
    this.#isCharged = charged
  }

  /**
   * One report per limit, in the order they were written; none when blocked, or when nothing could decide.
   * They are made when first asked for, so a copy by `{ ...verdict }` is without them; `toJSON()` is with them.
   */
  get limits(): readonly LimitReport[] {
    this.#limits ??= isOfLimits(this.#result, this.#from) ? reportsOf(this.#request, this.#result, this.#from.kept) : []
    return this.#limits
  }

  /**
   * The keys that it was given for, each once; those of a blocked client, too. Not in its JSON nor in copies by
   * `{ ...verdict }`, which may go to clients.
   */
  get keys(): readonly Identity[] {
    return Verdict.identitiesOf(this).map(identityIn)
  }

  /** Everything but the keys, as plain data. */
  toJSON(): object {
    return { ...this, limits: this.limits }
  }

  /** @internal What `console.log` shows: the same, under the name of this class. */
  [INSPECT](): object {
    return Object.assign(new Shown.Verdict(), this.toJSON())
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
    if (Verdict.chargeOf(this)) return this.#from.charges.settle(this, actualCost)
    checkActualCost('settle', actualCost, Verdict.mostToSettle(this))
    return false
  }

  /** @internal The verdict of a store's result. An allowed request has been charged, unless it was a peek. */
  static of(request: StoreRequest, result: StoreResult, from: DecidedBy): Verdict {
    const { allowed, values, offset, block } = result
    const charged = allowed && request.op !== PEEK
    if (!(request.plan as ReadablePlan).isSimple || block || from.kept)
      return aggregateVerdict(request, result, from, charged, NO_MARKS)
    // Nearly every verdict is the report of its only limit.
    const remaining = values[offset] as number
    const retryMs = values[offset + 1] as number
    const resetMs = values[offset + 2] as number
    return new Verdict(request, result, from, charged, allowed, remaining, retryMs, resetMs, 0)
  }

  /** @internal The verdict where no limit decided: `onUnavailable` allowed or denied the request. */
  static undecided(request: StoreRequest, result: StoreResult, from: DecidedBy): Verdict {
    return aggregateVerdict(request, result, from, false, NO_MARKS)
  }

  /** @internal The verdict of a list. `text`: the identity that is listed, which may be of no kind that is counted. */
  static listed(plan: ReadablePlan, text: string, list: ListReport, charges: DecidedBy['charges']): Verdict {
    const request: StoreRequest = { op: PEEK, plan, identities: [text], costs: [], permitId: '' }
    const result: StoreResult = { now: 0, allowed: list.effect === 'allow', values: [], offset: 0 }
    return aggregateVerdict(request, result, { ...BY_LIST, charges, list }, false, NO_MARKS)
  }

  /** @internal What a refund or release needs; undefined where nothing was charged. */
  static chargeOf(verdict: Verdict): Charge | undefined {
    if (verdict.#charge || !verdict.#isCharged) return verdict.#charge
    const store = verdict.#from.store as Store
    const { tier, resets } = verdict.#from
    verdict.#charge = {
      store,
      request: verdict.#request,
      result: verdict.#result,
      tier,
      resets,
      refunded: false,
      settled: 0,
    }
    return verdict.#charge
  }

  /** @internal What was charged; anything where nothing was, because it was refused or nothing could decide. */
  static mostToSettle(verdict: Verdict): number {
    const isDecided = verdict.#from.store !== undefined
    return Verdict.chargeOf(verdict) || (verdict.allowed && isDecided) ? verdict.cost : Number.MAX_SAFE_INTEGER
  }

  /** @internal What it was decided by: the same for all verdicts with limits of the same names and sizes. */
  static planOf(verdict: Verdict): Plan {
    return verdict.#request.plan
  }

  /** @internal The limits that decided, as they were made, in the order of `limits`. */
  static definitionsOf(verdict: Verdict): readonly Limit[] {
    return (verdict.#request.plan as ReadablePlan).definitions
  }

  /** @internal The keys it was given for, as one text. */
  static keyOf(verdict: Verdict): string {
    return verdict.#request.identities.join('\n')
  }

  /** @internal The verdict of a request that is over the limit and proceeds all the same, slowed down or degraded. */
  static served(verdict: Verdict): Verdict {
    if (verdict.reason !== 'impossible' || verdict.reported) return verdict
    return Verdict.marked(verdict, { degraded: verdict.degraded, isServed: true })
  }

  /** @internal The same verdict, marked: one that was handed out never changes. Both share one charge, refunded once. */
  static marked(verdict: Verdict, marks: Marks): Verdict {
    const charge = Verdict.chargeOf(verdict)
    const isCharged = charge !== undefined && !charge.refunded
    const copy = aggregateVerdict(verdict.#request, verdict.#result, verdict.#from, isCharged, marks)
    copy.#charge = charge
    return copy
  }

  /** @internal What was decided on, each once. */
  static identitiesOf(verdict: Verdict): readonly string[] {
    const { identities } = verdict.#request
    return identities.length === 1 ? identities : [...new Set(identities)]
  }

  /** @internal Which store decided what. */
  static decisionOf(verdict: Verdict): { store: Store | undefined; plan: Plan; identities: readonly string[] } {
    const { plan, identities } = verdict.#request
    return { store: verdict.#from.store, plan, identities }
  }

  /** @internal The same request, refused by a block or ban that came of it. */
  static barred(verdict: Verdict, now: number, block: BlockReport): Verdict {
    const result: StoreResult = { now, allowed: false, values: [], offset: 0, block }
    return aggregateVerdict(verdict.#request, result, verdict.#from, false, NO_MARKS)
  }

  /** @internal What decided. */
  static sourceOf(verdict: Verdict): DecisionSource {
    const { kind } = verdict
    if (verdict.#from.isOfResponse) return 'response'
    if (kind === 'decided') return verdict.#result.source ?? 'store'
    return kind === 'listed' ? 'list' : 'local'
  }

  /** @internal Milliseconds that the decision took; undefined where they were not measured, as for lists. */
  static tookOf(verdict: Verdict): number | undefined {
    return verdict.#from.took?.ms
  }

  /** @internal Whether a ban began with the decision. */
  static hasBegunBan(verdict: Verdict): boolean {
    return verdict.#result.block?.hasBegun === true
  }

  /** @internal The request to the store; undefined where no limit was asked. */
  static limitedRequestOf(verdict: Verdict): StoreRequest | undefined {
    return isOfLimits(verdict.#result, verdict.#from) ? verdict.#request : undefined
  }

  /** @internal How much of a limit, by its number, is in use after the decision: 0 to 1. */
  static useOf(verdict: Verdict, i: number): number {
    return useWithout(verdict.#request, verdict.#result, i, 0)
  }

  /** @internal How much of it was in use before the charge. */
  static useBefore(verdict: Verdict, i: number): number {
    return useWithout(verdict.#request, verdict.#result, i, unitsOf(verdict.#request.costs, verdict.#request, i))
  }

  /** @internal How much of it there had to be for the request to be admitted: above 1 where it was not. */
  static needOf(verdict: Verdict, i: number): number {
    const request = verdict.#request
    const missing = verdict.#isCharged ? 0 : unitsOf(request.needs ?? request.costs, request, i)
    return useWithout(request, verdict.#result, i, -missing)
  }

  /** @internal The turn that queueing limits have given for what was charged; undefined where none has to be waited for. */
  static bookingOf(verdict: Verdict): { id: string; inMs: number; units: number; unitMs: number } | undefined {
    const { plan, identities, costs } = verdict.#request
    if (verdict.delayMs === 0 || !verdict.#isCharged) return undefined
    const { resolved, cellOf, cells } = plan as ReadablePlan
    const ids: string[] = []
    let [units, unitMs] = [0, 0]
    for (const [i, { queue, windowMs, limit }] of resolved.entries()) {
      const c = cellOf[i] as number
      const { id, identity } = cells[c] as Cell
      if (!queue || costs[c] === 0) continue
      ids.push(`${id}\n${identities[identity]}`)
      if (windowMs / limit > unitMs) [units, unitMs] = [costs[c] as number, windowMs / limit]
    }
    return units === 0 ? undefined : { id: ids.join('\n'), inMs: verdict.delayMs, units, unitMs }
  }

  /** @internal Whether the decision charged. It may have been refunded since. */
  static isCharged(verdict: Verdict): boolean {
    return verdict.#isCharged
  }

  /** @internal Whether what it charged has not been refunded. */
  static isHeld(verdict: Verdict): boolean {
    return verdict.#isCharged && verdict.#charge?.refunded !== true
  }

  /** @internal The identities on which a limit had no room, each once. */
  static refusingIdentities(verdict: Verdict): readonly string[] {
    const { plan, identities } = verdict.#request
    const { cells, cellOf } = plan as ReadablePlan
    const refusing = new Set<string>()
    for (const [i, { allowed }] of verdict.limits.entries()) {
      const { identity } = cells[cellOf[i] as number] as Cell
      if (!allowed) refusing.add(identities[identity] as string)
    }
    return [...refusing]
  }

  /**
   * @internal The identities that a refusal is of, by the policy that refuses: those that had no room; all of them where no limit
   * refuses, as a block does not say which one is blocked.
   */
  static refusedBy(verdict: Verdict): ReadonlyMap<string, ReadonlySet<string>> {
    const { plan, identities } = verdict.#request
    const { cells, cellOf, definitions } = plan as ReadablePlan
    const { limits } = verdict
    const isByLimit = limits.some(({ allowed }) => !allowed)
    const refused = new Map<string, Set<string>>()
    for (const [i, cell] of cellOf.entries()) {
      if (isByLimit && limits[i]?.allowed) continue
      // Policies that are data are decided as one limiter.
      const policy = definitions[i]?.policy?.split('.', 1)[0] ?? plan.policy
      const identity = identities[(cells[cell] as Cell).identity] as string
      refused.set(policy, (refused.get(policy) ?? new Set()).add(identity))
    }
    return refused
  }
}

/** What a verdict has of its decision beside the store's result. */
export interface DecidedBy {
  readonly charges: { settle(verdict: Verdict, actualCost: number): Promise<boolean> }
  readonly kind: VerdictKind
  /** Refunds go to this store; undefined where no limit decided. */
  readonly store: Store | undefined
  /** Where no limit decided: milliseconds until the next try, 0 if the request was admitted. */
  readonly tryAgainMs?: number
  readonly cost: number
  readonly tier: string | undefined
  readonly priority: number
  /** Units per cell that are kept for higher priorities. */
  readonly kept: readonly number[] | undefined
  /** How many resets of its limiter there had been before. */
  readonly resets: number
  /** The list that decided; undefined where none did. */
  readonly list: ListReport | undefined
  /** How long it took, where that is measured. */
  readonly took: { ms: number } | undefined
  /** Whether it is of bytes of a response under way, whose request was decided on before. */
  readonly isOfResponse?: true
}

const BY_LIST: Omit<DecidedBy, 'charges' | 'list'> = {
  kind: 'listed',
  store: undefined,
  cost: 0,
  tier: undefined,
  priority: 0,
  kept: undefined,
  resets: 0,
  took: undefined,
}

/** @internal What happened to a request after its decision. */
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

/** @internal */
export interface Charge {
  readonly store: Store
  readonly request: StoreRequest
  readonly result: StoreResult
  readonly tier: string | undefined
  /** How many resets of the limiter there had been before. */
  readonly resets: number
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

/** @internal */
export function banReport(now: number, { ban, reason, remainingMs }: BlockReport): BanReport | undefined {
  return ban && { rung: ban.rung, strikes: ban.strikes, until: now + remainingMs, reason }
}

function shownBlock(block: BlockReport): BlockReport {
  return isForEver(block.remainingMs) ? { ...block, remainingMs: Number.POSITIVE_INFINITY } : block
}

/** @internal Whether a client is refused whatever its limits say: nothing lets such a request through. */
export function isBarred({ reason }: Verdict): boolean {
  return reason === 'blocked' || reason === 'banned' || reason === 'denied'
}

/** The verdict of all limits together. */
function aggregateVerdict(
  request: StoreRequest,
  result: StoreResult,
  from: DecidedBy,
  charged: boolean,
  marks: Marks,
): Verdict {
  const { block, values, offset } = result
  if (from.list)
    return new Verdict(request, result, from, false, result.allowed, 0, result.allowed ? 0 : -1, 0, 0, marks)
  const untilMs = block?.remainingMs ?? from.tryAgainMs
  // While others wait, a new request is not admitted, whatever room there is.
  const allowed = result.allowed && marks.waitMs === undefined && !marks.hasLeft
  const waitMs = marks.waitMs ?? result.behindMs ?? 0
  if (untilMs !== undefined) {
    const againMs = isForEver(untilMs) ? -1 : Math.max(untilMs, waitMs)
    return new Verdict(request, result, from, charged, allowed, 0, againMs, 0, 0, marks)
  }

  const { resolved, positions, cellOf } = request.plan as ReadablePlan
  let remaining = Number.MAX_SAFE_INTEGER
  let retryMs = waitMs
  let resetMs = 0
  let delayMs = 0
  let hasUnits = false
  for (let i = 0; i < resolved.length; i++) {
    const limit = resolved[i] as ResolvedLimit
    const at = offset + (positions[i] as number) * STRIDE
    const cell = cellOf[i] as number
    const left = leftOf(values[at] as number, cell, from.kept)
    const spread = spreadFor(limit, request, cell)
    const retry = later(values[at + 1] as number, spread)
    // Bytes are no units of cost: `remaining` shows them only where no limit counts requests.
    const isUnits = limit.unit !== 'content-bytes' && limit.unit !== 'response-bytes'
    if (isUnits && !hasUnits) {
      hasUnits = true
      remaining = left
    } else if (isUnits === hasUnits && left < remaining) remaining = left
    // One limit that never has room is enough.
    if (retry < 0 || retryMs < 0) retryMs = -1
    else retryMs = Math.max(retryMs, retry)
    resetMs = Math.max(resetMs, later(values[at + 2] as number, spread))
    // A peek put nothing into the bucket, so all that is in it comes first.
    const own = charged ? (request.costs[cell] as number) : 0
    if (limit.queue && allowed) delayMs = Math.max(delayMs, queueDelay(values[at + 3] as number, own, limit))
  }
  return new Verdict(request, result, from, charged, allowed, remaining, retryMs, resetMs, delayMs, marks)
}

/** Whether limits were asked: neither a list nor a block has decided, nor what decides while the store is away. */
function isOfLimits({ block }: StoreResult, { list, tryAgainMs }: DecidedBy): boolean {
  return !block && !list && tryAgainMs === undefined
}

function refusalReason(
  { block, allowed }: StoreResult,
  impossible: boolean,
  { list, tryAgainMs }: DecidedBy,
): RefusalReason {
  if (list) return 'denied'
  if (block) return block.ban ? 'banned' : 'blocked'
  if (impossible) return 'impossible'
  // The limits have room, but others wait before it.
  return tryAgainMs === undefined || allowed ? 'limited' : 'unavailable'
}
