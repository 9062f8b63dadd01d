import { CELL_KINDS } from '../../kinds/all.js'
import {
  CONSUME,
  EVERY_POLICY,
  PEEK,
  type Plan,
  REFUND,
  RELEASE,
  type ResolvedLimit,
  refusalBy,
  resultOf,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { arePermits, isOwnUnit } from '../../store/units.js'
import { areEqual } from '../../util/are-equal.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { outsideRequests } from '../../util/outside-requests.js'
import type { RedisBase } from '../slots/base.js'
import type { Change, Layer } from './layer.js'

/** How long a refusal is repeated at most, in ms. Room made by other processes may go unnoticed for as long. */
const MAX_MS = 1000
/** Maximum cached refusals, and maximum per key, which may differ in policy, or in the units of which none is needed less. */
const MAX_REFUSALS = 10_000
const MAX_PER_KEY = 8

interface Refusal {
  readonly request: StoreRequest
  readonly result: StoreResult
  /** The identities on which a limit had no room; empty for a block. */
  readonly refusedOn: readonly string[]
  /** When the result arrived, and when it expires, by the cache's clock. */
  readonly from: number
  readonly until: number
  isOver: boolean
}

const NONE: readonly Refusal[] = []

/** Refusals of about the same time, which are dropped together. */
class Generation {
  size = 0
  /** Refusals by all identities of the decision. */
  readonly #byKey = new Map<string, Refusal[]>()
  /** Refusals of several identities, by policy and by each identity that refused. */
  readonly #byRefusing = new Map<string, Set<Refusal>>()

  find(key: string, request: StoreRequest): Refusal | undefined {
    for (const refusal of this.#byKey.get(key) ?? NONE) {
      if (!refusal.isOver && refuses(refusal, request)) return refusal
    }
    return undefined
  }

  add(refusal: Refusal): void {
    const { request, refusedOn } = refusal
    const key = keyOf(request)
    const others = this.#byKey.get(key)
    this.size++
    if (!others) this.#byKey.set(key, [refusal])
    // The newest comes first, since it is likely to be requested next.
    else if (others.unshift(refusal) > MAX_PER_KEY) others.pop()
    if (request.identities.length === 1) return
    for (const identity of refusedOn) {
      getOrInsert(this.#byRefusing, `${request.plan.policy}\n${identity}`, () => new Set()).add(refusal)
    }
  }

  /** The state of an identity has changed, so refusals that depend on it may be outdated. */
  changed(plan: Plan, identity: string): void {
    for (const refusal of this.#byKey.get(identity) ?? NONE) {
      if (shareState(refusal.request.plan, plan)) refusal.isOver = true
    }
    const refusals = this.#byRefusing.size > 0 ? this.#byRefusing.get(`${plan.policy}\n${identity}`) : undefined
    for (const refusal of refusals ?? NONE) {
      if (!shareState(refusal.request.plan, plan)) continue
      refusal.isOver = true
      refusals?.delete(refusal)
    }
  }

  /** Blocks are rare enough to check all refusals. */
  changedBlock(policy: string, identity: string): void {
    for (const refusals of this.#byKey.values()) {
      for (const refusal of refusals) {
        const { plan, identities } = refusal.request
        const isOfPolicy = policy === EVERY_POLICY || plan.policy === policy || plan.banningPolicy === policy
        if (isOfPolicy && identities.includes(identity)) refusal.isOver = true
      }
    }
  }
}

/** An identity with changes under way, whose results may be outdated. */
interface Mark {
  /** Number of reasons for the mark. */
  holders: number
  /** Number of commands under way that make room, block or unblock. */
  clears: number
  /** Number of changes that made earlier results outdated. */
  changes: number
}

/**
 * Repeats recent refusals without Redis. Without other traffic, a refusal stands until its retry time. It is repeated
 * for the same costs under the same plan, for at most a second, and only while no other units return either. Its report
 * of the keys that refused therefore matches Redis's to the ms.
 *
 * Costs in units of a user's own, such as tokens, are seldom equal. A refusal by limits of those is repeated for requests that
 * need no less. For one that needs more, the wait may be too short in logs and windows of segments, and 1 ms too long in buckets.
 *
 * Charges, refunds, resets and blocks by this store take effect at once. Changes by other processes are noticed within
 * that second, as are changes of limits on keys that did not refuse.
 */
export class DenyCache implements Layer {
  readonly #next: Layer
  readonly #clock: (() => number) | undefined
  readonly #now: () => number
  readonly #isCluster: boolean
  #young = new Generation()
  #old = new Generation()
  #latest = 0
  #timer: NodeJS.Timeout | undefined
  readonly #marks = new Map<string, Mark>()
  #isClosed = false

  /** `clock`: the store's own clock, if it has one. Otherwise the performance clock follows Redis's clock. */
  constructor({ clock, slots }: Pick<RedisBase, 'clock' | 'slots'>, next: Layer) {
    this.#clock = clock
    this.#now = clock ?? (() => performance.now())
    this.#isCluster = slots.isCluster
    this.#next = next
  }

  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { op, plan, identities } = request
    if (op === CONSUME && !request.fresh) {
      return (
        this.#find(request) ?? (this.#isInParts(request) ? this.#passOnInParts(request) : this.#next.decide(request))
      )
    }
    const result = this.#next.decide(request)
    if ((op !== REFUND && op !== RELEASE) || !(result instanceof Promise)) return result
    // Its room exists once it has reached Redis, whatever earlier replies say.
    return result.finally(this.#changing(plan, identities))
  }

  onResult(request: StoreRequest, result: StoreResult, _slot: number, sentAt: number): void {
    if (request.op === CONSUME && !result.allowed) {
      if (!request.fresh && !this.#isInParts(request)) this.#keep(request, result, sentAt)
    } else if (request.op !== PEEK && result.behindMs === undefined) this.#changed(request.plan, request.identities)
  }

  /** Whether a decision may combine results of several slots, which other decisions may overtake. */
  #isInParts({ identities }: StoreRequest): boolean {
    return this.#isCluster && identities.length > 1
  }

  async #passOnInParts(request: StoreRequest): Promise<StoreResult> {
    const { identities } = request
    const sentAt = performance.now()
    const before = this.#mark(identities).map(({ changes }) => changes)
    try {
      const result = await this.#next.decide(request)
      const hasChanged = (id: string) => this.#marks.get(id)?.changes !== before[identities.indexOf(id)]
      if (!result.allowed) this.#keep(request, result, sentAt, hasChanged)
      return result
    } finally {
      this.#unmark(identities)
    }
  }

  change(what: Change): (() => void) | undefined {
    switch (what.kind) {
      case 'reset':
        return this.#changing(what.plan, what.identities)
      case 'unblock all':
        return () => this.#clear()
      case 'forget':
        return this.#clearing([what.identity], () => this.#clear())
      default:
        for (const generation of [this.#young, this.#old]) generation.changedBlock(what.policy, what.identity)
        return this.#clearing([what.identity])
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#clear()
  }

  /** The result that Redis would give, if known. */
  #find(request: StoreRequest): StoreResult | undefined {
    if (this.#young.size === 0 && this.#old.size === 0) return undefined
    const key = keyOf(request)
    const refusal = this.#young.find(key, request) ?? this.#old.find(key, request)
    // A refusal that counts as a strike must reach Redis. A refusal by a block or ban does not count.
    if (!refusal || (request.strike !== undefined && !refusal.result.block)) return undefined
    const now = this.#now()
    return this.#isSteppedBack(now) || now >= refusal.until ? undefined : ageRefusal(refusal, request, now)
  }

  #clear(): void {
    this.#young = new Generation()
    this.#old = new Generation()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #keep(request: StoreRequest, result: StoreResult, sentAt: number, hasChanged = (_identity: string) => false): void {
    // A refusal because of waiters stands only while they wait.
    if (this.#isClosed || result.behindMs !== undefined || (request.strike !== undefined && !result.block)) return
    const isStale = (identity: string) => (this.#marks.get(identity)?.clears ?? 0) > 0 || hasChanged(identity)
    const { block } = result
    const refusal = block ? { refusedOn: [], holdsMs: block.remainingMs } : refusalOf(request, result)
    if (!refusal || (block ? request.identities : refusal.refusedOn).some(isStale)) return
    const from = this.#now()
    if (this.#isSteppedBack(from) || (this.#clock && from < result.now)) return
    const holdsMs = Math.min(MAX_MS, refusal.holdsMs)
    // Redis decides after the request was sent, and its ms may be about to end.
    const until = this.#clock ? result.now + holdsMs : sentAt + holdsMs - 1
    if (from >= until) return
    // One timer for all generations, while there are any. It does not keep the process alive.
    this.#timer ??= outsideRequests(() => setInterval(() => this.#turn(), MAX_MS).unref())
    if (this.#young.size >= MAX_REFUSALS / 2) this.#turn()
    const { refusedOn } = refusal
    this.#young.add({ request, result: copyOf(request.plan, result), refusedOn, from, until, isOver: false })
  }

  /** Drops the generation before last: its refusals have expired or must make room. */
  #turn(): void {
    this.#old = this.#young
    this.#young = new Generation()
    if (this.#old.size === 0) this.#clear()
  }

  #changed(plan: Plan, identities: readonly string[]): void {
    if (this.#marks.size === 0 && this.#young.size === 0 && this.#old.size === 0) return
    for (const identity of identities) {
      const mark = this.#marks.get(identity)
      if (mark) mark.changes++
      if (this.#young.size > 0) this.#young.changed(plan, identity)
      if (this.#old.size > 0) this.#old.changed(plan, identity)
    }
  }

  /**
   * Starts a change that makes room: earlier refusals become outdated, including those under way. Returns a function
   * that ends the change.
   */
  #changing(plan: Plan, identities: readonly string[]): () => void {
    this.#changed(plan, identities)
    return this.#clearing(identities)
  }

  /** Until the returned function is called, no refusal of these identities is cached. */
  #clearing(identities: readonly string[], over = () => {}): () => void {
    const marks = this.#mark(identities)
    for (const mark of marks) {
      mark.clears++
      mark.changes++
    }
    return () => {
      over()
      // Replies that arrive together reach their callers in any order. By the next turn, all earlier replies have.
      setImmediate(() => {
        for (const mark of marks) mark.clears--
        this.#unmark(identities)
      })
    }
  }

  #mark(identities: readonly string[]): Mark[] {
    return identities.map((identity) => {
      let mark = this.#marks.get(identity)
      if (!mark) {
        mark = { holders: 0, clears: 0, changes: 0 }
        this.#marks.set(identity, mark)
      }
      mark.holders++
      return mark
    })
  }

  #unmark(identities: readonly string[]): void {
    for (const identity of identities) {
      const mark = this.#marks.get(identity)
      if (mark && --mark.holders === 0) this.#marks.delete(identity)
    }
  }

  /** A clock that steps back makes Redis rewrite states, so earlier refusals are uncertain. */
  #isSteppedBack(now: number): boolean {
    const isBack = now < this.#latest
    if (isBack) this.#clear()
    this.#latest = now
    return isBack
  }
}

function keyOf({ identities }: StoreRequest): string {
  return identities.length === 1 ? (identities[0] as string) : identities.join('\n')
}

/** Whether a refusal also refuses another request. */
function refuses({ request: refused, result }: Refusal, request: StoreRequest): boolean {
  if (refused.plan !== request.plan || !areEqual(refused.identities, request.identities)) return false
  if (areEqual(refused.costs, request.costs) && areEqual(refused.needs, request.needs)) return true
  // Costs in requests repeat themselves, and their waits are exact.
  if (!request.plan.cells.some(({ limits: [limit] }) => isOwnUnit((limit as ResolvedLimit).unit))) return false
  return result.block !== undefined || waitsFor(refused, result, request) !== undefined
}

/**
 * The wait of each limit for another request, as of the refusal. Undefined if a limit that had room may lack it for this one, or
 * where none is sure to refuse.
 */
function waitsFor(refused: StoreRequest, { values }: StoreResult, request: StoreRequest): number[] | undefined {
  const waits: number[] = []
  for (const [c, { kernel, params, limits }] of request.plan.cells.entries()) {
    const [units, needed] = [refused, request].map(({ costs, needs = costs }) => needs[c]) as [number, number]
    for (const { capacity, unit } of limits) {
      const [remaining, waitMs, resetMs] = values.slice(STRIDE * waits.length) as [number, number, number]
      if (needed <= remaining) waits.push(0)
      else if (needed > capacity) waits.push(-1)
      else if (needed === units) waits.push(waitMs)
      else if (needed < units || waitMs === 0 || !isOwnUnit(unit)) return undefined
      else waits.push(CELL_KINDS[kernel].waitForMore?.(params, { units, waitMs, resetMs }, needed) ?? waitMs)
    }
  }
  return waits.some((wait) => wait !== 0) ? waits : undefined
}

/** Whether charges under one plan may count under the other. */
function shareState(one: Plan, other: Plan): boolean {
  if (one === other) return true
  return one.policy === other.policy && one.cells.some(({ id }) => other.cells.some((cell) => cell.id === id))
}

/** The limits of a decision, each with its identity and report. */
function limitsOf({ plan, identities }: StoreRequest, { values, offset }: StoreResult) {
  let at = offset
  return plan.cells.flatMap(({ identity, limits }) =>
    limits.map(({ unit }) => {
      const [, waitMs, , growsAfterMs] = values.slice(at, at + STRIDE) as [number, number, number, number]
      at += STRIDE
      return { identity: identities[identity] as string, unit, waitMs, growsAfterMs }
    }),
  )
}

/**
 * The identities that refuse, and the ms for which no units return to any of their limits, so that only times change.
 * Undefined if a permit is missing, as it may be released at any moment.
 */
function refusalOf(request: StoreRequest, result: StoreResult) {
  const limits = limitsOf(request, result)
  const refusing = limits.filter(({ waitMs }) => waitMs !== 0)
  if (refusing.some(({ unit }) => arePermits(unit))) return undefined
  const refusedOn = new Set(refusing.map(({ identity }) => identity))
  // In a refusal, Redis puts `growsAfterMs` in the receipt's place. It is negative if no units are in use.
  const growing = limits.filter(({ identity, growsAfterMs }) => growsAfterMs > 0 && refusedOn.has(identity))
  return { refusedOn: [...refusedOn], holdsMs: Math.min(...growing.map(({ growsAfterMs }) => growsAfterMs)) }
}

/** The part of a result to repeat: without the rest of its batch, and without `hasBegun`, as a ban begins once. */
function copyOf({ reports }: Plan, { now, values, offset, block }: StoreResult): StoreResult {
  const source = 'deny-cache'
  if (block) {
    return { ...refusalBy({ ...block, hasBegun: false }, now), source }
  }
  return { ...resultOf(now, false, values.slice(offset, offset + reports * STRIDE), 0), source }
}

/** The result for a request that it refuses, at the present instant. Time is counted from the reply's arrival, so that no wait is too short. */
function ageRefusal({ request: refused, result, from }: Refusal, request: StoreRequest, at: number): StoreResult {
  const ms = Math.floor(at - from)
  const isSame = areEqual(refused.costs, request.costs) && areEqual(refused.needs, request.needs)
  if (ms === 0 && isSame) return result
  const { block, values } = result
  const waits = isSame || block ? undefined : waitsFor(refused, result, request)
  const now = result.now + ms
  if (block) return { ...result, now, block: { ...block, remainingMs: block.remainingMs - ms } }
  const later = values.slice()
  for (let i = 0; i < values.length; i += STRIDE) {
    const retry = waits?.[i / STRIDE] ?? (values[i + 1] as number)
    later[i + 1] = retry > 0 ? retry - ms : retry
    later[i + 2] = Math.max(0, (values[i + 2] as number) - ms)
  }
  return { ...resultOf(now, false, later, 0), source: 'deny-cache' }
}
