import { propertyOf } from '../util/property-of.js'
import type { MaybePromise } from '../util/when-known.js'
import type { Calendar, CalendarWindow, KernelName } from './algorithms.js'
import type { BANS, BanTerms, BlockReport, StoreBans } from './bans.js'
import type { CHANGES, StoreChanges } from './changes.js'
import type { StoreEvents } from './events.js'
import type { FIGURES, FiguresKeeper } from './figures.js'
import type { StoreHealth, StoreStats } from './health.js'
import type { IdentityByKind } from './identity.js'
import type { ChargeOutcome, Keep, KeepTerms } from './kept-charge.js'
import { KEYED_SCRIPTS, type KeyedScripts } from './keyed-scripts.js'
import { LAST_REFUSALS, type LastRefusals } from './last-refusals.js'
import type { LISTS, ListsOfStore } from './list.js'
import type { OFFENDERS, StoreOffenders } from './offenders.js'
import { SHARED_NOTES, type SharedNotes } from './shared-notes.js'
import type { StoreList } from './store-list.js'

export type { CalendarWindow, KernelName } from './algorithms.js'
export {
  type BanTerms,
  type BlockReport,
  blockReport,
  EVERY_POLICY,
  MAX_RUNGS,
  type Strike,
  type StrikeResult,
} from './bans.js'
export type { ChargeOutcome, Keep, KeepTerms } from './kept-charge.js'

/**
 * The port between policies and state. A store knows kernels, keys and its own clock, but no policies, requests or
 * HTTP. To add a store, implement `Store` and pass `storeContract` of `@sluice/testing`.
 */

/** Byte units. A request consumes them by the size of its body or response, not by its cost. */
export type ByteUnit = 'content-bytes' | 'response-bytes'

/**
 * The unit that a limit counts: a built-in one, or one of the user's such as `tokens`. The built-in names are quota units of
 * draft-ietf-httpapi-ratelimit-headers, which uses `content-bytes` for bytes of both requests and responses.
 */
export type QuotaUnit = 'requests' | ByteUnit | 'concurrent-requests' | (string & {})

/** One limit with every option resolved to a number. */
export interface ResolvedLimit {
  /** Unique within its policy; the name in headers and problem details. */
  readonly name: string
  readonly algorithm: string
  /** Units per window. */
  readonly limit: number
  /** Milliseconds. For `concurrency`, how long a permit is held without being renewed. */
  readonly windowMs: number
  /** Maximum units that can be admitted at one instant. */
  readonly capacity: number
  /** The unit that the limit counts. */
  readonly unit: QuotaUnit
  /** Whether an admitted request waits for its turn (`delayMs`). */
  readonly queue: boolean
  /** Present for windows of the calendar. `windowMs` is then the length of the one that runs. */
  readonly calendar: CalendarWindow | undefined
  /** Ms over which waits are spread, by identity. Verdicts add the spread; stores report exact times. */
  readonly spreadMs: number | undefined
}

/** Terms for units that a process may take ahead for one key and spend by itself. */
export interface LeaseTerms {
  /** Maximum units per lease. */
  readonly size: number
  /** How long the units may be spent, in ms from before the lease request was sent. */
  readonly ttlMs: number
}

/** Terms under which each process may count a plan by itself between exchanges. */
export interface RelaxedTerms {
  /** Interval in ms at which a process exchanges its counts with the others. */
  readonly syncEveryMs: number
}

/** One piece of state: one kernel's state under one key. */
export interface Cell {
  readonly kernel: KernelName
  /**
   * Kernel and parameters as text, part of the key: a changed limit starts fresh instead of misreading old state. Equal
   * ids mean equal parameters, except for the amounts of carried cells.
   */
  readonly id: string
  /**
   * The id that adjacent cells on one identity share. Every plan with one of these cells has all of them, in this
   * order. A store may therefore store their states together, under this id.
   */
  readonly joint: string | undefined
  /** The kernel's parameters, in the order the kernel names them. */
  readonly params: readonly number[]
  /** Index of the identity of a `StoreRequest` that this cell is charged on. */
  readonly identity: number
  /** The reported limits: one, or several that share a log. */
  readonly limits: readonly ResolvedLimit[]
  /**
   * Whether the id leaves out the amounts among `params`. Cells of several plans with different amounts then share one
   * state. Another plan may have charged more than this one admits. `CHARGE` never charges such a cell.
   */
  readonly isCarried: boolean | undefined
  /** Present for a window of the calendar whose `params` have bounds: the calendar that they are of. */
  readonly calendar: Calendar | undefined
  /**
   * Present if units are leased. `params` then allow for units that are spent after they are counted. Equal for all
   * cells of a plan.
   */
  readonly lease: LeaseTerms | undefined
}

export interface SharesTurns {
  /** Other processes trust a report of waiting requests for this many ms. */
  readonly ttlMs: number
}

/** The policies whose blocks and bans refuse requests, in addition to `EVERY_POLICY`. */
export type Banning = Pick<Plan, 'policy' | 'banningPolicy'>

/** Cells that are decided together, all or none. Plans are made once and compared by reference. */
export interface Plan {
  readonly policy: string
  readonly cells: readonly Cell[]
  /** Number of identities in a `StoreRequest` for this plan. */
  readonly identities: number
  /** The prefix of each identity's text: its kind and `=`. A request may count another kind instead. */
  readonly starts: readonly string[]
  /** Number of limits that all cells report. */
  readonly reports: number
  /** Present if refusals may lead to a ban. */
  readonly ban: BanTerms | undefined
  /** Present if requests wait for their turn across processes: see `StoreRequest.turn`. */
  readonly sharesTurns: SharesTurns | undefined
  /** Present if admitted charges are kept: see `StoreRequest.keep`. */
  readonly keeps: KeepTerms | undefined
  /**
   * Another policy whose blocks and bans apply. Policies that are decided under one name may each ban for themselves.
   */
  readonly banningPolicy: string | undefined
  /**
   * Present if processes may exceed the limits slightly to avoid round trips to the store. The cells then count units
   * beyond the limit, too.
   */
  readonly relaxed: RelaxedTerms | undefined
}

/** The fields of a limit whose name is not known, where they are as usual. */
export const UNNAMED = { name: '', queue: false, calendar: undefined, spreadMs: undefined } as const

/** The fields of a cell on the first identity, where they are as usual. */
export const PLAIN_CELL = {
  identity: 0,
  joint: undefined,
  isCarried: false,
  calendar: undefined,
  lease: undefined,
} as const

/** The fields of a plan that neither bans, waits, keeps charges nor counts in a relaxed way. */
export const NO_TERMS = {
  ban: undefined,
  sharesTurns: undefined,
  keeps: undefined,
  banningPolicy: undefined,
  relaxed: undefined,
} as const

/** Decide, and charge every cell if all have room. */
export const CONSUME = 0
/** Decide and change nothing. */
export const PEEK = 1
/**
 * Like consume, but also charges a refusal, as far as each limit has room. A charged refusal takes no permits, as it is
 * not in flight.
 */
export const CHARGE = 2
/** Refund `costs` of a charge, in full or in part, once. Never beyond full capacity, and never to a missing state. */
export const REFUND = 3
/** Release the permits that a charge took; cells without permits are left alone. */
export const RELEASE = 4
/** Hold the permits that a charge took for another `ttl`; cells without permits are left alone. */
export const RENEW = 5

/**
 * Charge `costs`, whatever room there is; cells with permits are left alone. Windows count all of it, up to a ceiling, and end. A
 * log holds no more than its limit, and a bucket no more than twice its capacity, which it pays off at its own rate.
 */
export const DEBIT = 6

export type Op =
  | typeof CONSUME
  | typeof PEEK
  | typeof CHARGE
  | typeof REFUND
  | typeof RELEASE
  | typeof RENEW
  | typeof DEBIT

/** Whether an op decides, and may refuse. The others change what is charged. */
export function isDecision(op: Op): boolean {
  return op <= CHARGE
}

/** A decision for a store to make, or a change of an earlier charge. */
export interface StoreRequest {
  readonly op: Op
  readonly plan: Plan
  readonly identities: readonly string[]
  /** Units per cell, whole, 0 or more. */
  readonly costs: readonly number[]
  /** Units per cell that must have room; absent if no cell needs more room than its cost. */
  readonly needs: readonly number[] | undefined
  /** The id of the permits taken in `concurrency` cells; empty if the plan has none. */
  readonly permitId: string
  /** Bypass the deny cache: a waiter needs the present state. */
  readonly fresh: boolean | undefined
  /**
   * Present if a refusal by a limit strikes the identity of the plan's `ban`. The number is the jitter in ms that is
   * added to a ban that this strike starts.
   */
  readonly strike: number | undefined
  /**
   * Present for a waiting request of a plan with `sharesTurns`. It is refused while a request of an earlier class waits
   * in another process. A request of such a plan that is not waiting is refused while any other waits.
   */
  readonly turn: WaitingTurn | undefined
  /** For `REFUND`, `RELEASE` and `RENEW`: the result of the charge. */
  readonly charge: StoreResult | undefined
  /**
   * For decisions: an admitted charge is kept in the same step, and the result has its id. For changes: the kept charge that
   * is changed, whose record decides which cells are.
   */
  readonly keep: Keep | undefined
}

/** A part of a kept charge: the request as it was charged, and its result. One for each slot of a cluster. */
export interface KeptCharge {
  readonly request: StoreRequest
  readonly result: StoreResult
}

/** The waiters of one class in the queue of one limit and key, in one process. */
export interface WaitingClass {
  /** Waiters of a class count as if they had come this many ms earlier. Each number is a class. */
  readonly headStartMs: number
  /**
   * When the first waiter came, minus the head start, by the process's performance clock. The class with the earlier
   * instant goes first.
   */
  readonly since: number
}

/** Queue data that the request at the head of a queue sends with its decision. */
export interface WaitingTurn {
  /** The id of its process: 12 ASCII characters. */
  readonly process: string
  /** Index of the cell in whose queue it waits; -1 if that cell is on another slot. */
  readonly cell: number
  /** Its own class. */
  readonly class: WaitingClass
  /** This process's waiters in that queue after a refusal, and after an admission. */
  readonly ifRefused: readonly WaitingClass[]
  readonly ifAdmitted: readonly WaitingClass[]
}

/** Numbers per reported limit in `StoreResult.values`. */
export const STRIDE = 4

export interface StoreResult {
  /** The store's clock at the decision, in ms. */
  readonly now: number
  /** Ms since 1970 at the decision, if the store's clock is not that of dates, as a monotonic clock. */
  readonly date: number | undefined
  readonly allowed: boolean
  /**
   * `STRIDE` integers per limit, in the order of cells and their limits:
   * - remaining units;
   * - ms until this cost would be admitted (0 now, -1 never);
   * - ms until the limit is unused again;
   * - the receipt that a refund needs; meaningless in a refusal.
   */
  readonly values: readonly number[]
  /** Index in `values` where this result starts. */
  readonly offset: number
  /** Per cell, the sum of earlier refunds to its bucket, in unit·ms; absent if there were none. Part of the receipt. */
  readonly refunded: readonly number[] | undefined
  /** The id of the charge, where it is kept. */
  readonly id: string | undefined
  /** For a change of a kept charge. */
  readonly outcome: ChargeOutcome | undefined
  /** Present if an identity is blocked; nothing was charged then. */
  readonly block: BlockReport | undefined
  /**
   * Present if a request in another process waits before this one: the remaining ms for which that report is trusted.
   * Nothing is charged then, and `values` are those of a peek.
   */
  readonly behindMs: number | undefined
  /**
   * The source of a decision that was not made by the store's state:
   * - `deny-cache`: a recent refusal;
   * - `lease`: units taken ahead;
   * - `relaxed`: this process's counts between two exchanges;
   * - `mirror`: the blocks that this process knows, during an outage.
   */
  readonly source: 'deny-cache' | 'lease' | 'relaxed' | 'mirror' | undefined
}

/** A request with each field as its own: a field that is absent would be read from a prototype that anyone may have polluted. */
export function requestOf(
  op: Op,
  plan: Plan,
  identities: readonly string[],
  costs: readonly number[],
): Writable<StoreRequest> {
  return {
    op,
    plan,
    identities,
    costs,
    needs: undefined,
    permitId: '',
    fresh: false,
    strike: undefined,
    turn: undefined,
    charge: undefined,
    keep: undefined,
  }
}

/** A result with each field as its own, as `requestOf`. */
export function resultOf(
  now: number,
  allowed: boolean,
  values: readonly number[],
  offset: number,
): Writable<StoreResult> {
  return {
    now,
    date: undefined,
    allowed,
    values,
    offset,
    refunded: undefined,
    id: undefined,
    outcome: undefined,
    block: undefined,
    behindMs: undefined,
    source: undefined,
  }
}

/** An object of which its maker still sets fields. */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** The result of a request that a block refuses. */
export function refusalBy(block: BlockReport, now: number): StoreResult {
  const result = resultOf(now, false, [], 0)
  result.block = block
  return result
}

/** The receipt of each cell in a result, which a refund needs. */
export function receiptsOf({ cells }: Plan, { values, offset }: StoreResult): number[] {
  let at = offset + STRIDE - 1
  return cells.map(({ limits }) => {
    const receipt = values[at] as number
    at += STRIDE * limits.length
    return receipt
  })
}

/** Whether the cost exceeds the capacity of a limit. */
export function isImpossible({ plan, costs, needs }: StoreRequest): boolean {
  return plan.cells.some((cell: Cell, c) =>
    cell.limits.some(({ capacity }) => (needs?.[c] ?? (costs[c] as number)) > capacity),
  )
}

/** The symbol of the part of a store that keeps charges: `store[KEPT_CHARGES]`. */
export const KEPT_CHARGES: unique symbol = Symbol.for('@sluice/core: kept charges')

/** The charges that a store keeps, for changes by their ids. Its `decide` keeps and changes them. */
export interface StoreKeptCharges {
  /** The parts of a kept charge. None for an id that is over, or that is none of this store and policy. */
  find(policy: string, id: string): MaybePromise<readonly KeptCharge[]>
}

/** The symbol of the part of a store for requests that wait: `store[WAITERS]`. */
export const WAITERS: unique symbol = Symbol.for('@sluice/core: waiters')

/** What requests that wait need of a store that processes share. */
export interface StoreWaiters {
  /**
   * Reports this process's waiters in a queue to other processes, for a plan with `sharesTurns`. An empty queue reports
   * no classes. The others trust the report for the plan's `ttlMs`. Absent on stores that no other process uses.
   */
  report?(
    plan: Plan,
    identities: readonly string[],
    queue: Pick<WaitingTurn, 'process' | 'cell'>,
    classes: readonly WaitingClass[],
  ): Promise<void>
  /**
   * Whether a plan's permits may have room for a cost; true if that is not known. Waiting requests check this every 50
   * ms, all at once, and request a decision only if it is true. Absent on stores where a decision costs as little.
   */
  mayHavePermits?(plan: Plan, identities: readonly string[], cost: number): Promise<boolean>
}

/** The symbol of the part of a store with the counts of this process alone. */
export const OWN_COUNTS: unique symbol = Symbol.for('@sluice/core: own counts')

/** What a process counts by itself between exchanges with the store. */
export interface OwnCounts {
  /** This process's own counts for a request during an outage, as the result of a peek. Undefined if there are none. */
  lastKnown(request: StoreRequest): StoreResult | undefined
}

export interface Store {
  /** The clock given to the store, in ms. The fallback during an outage uses the same clock. */
  readonly clock?: (() => number) | undefined
  /**
   * Decides at one instant of the store's clock. A store in this process returns no promise. An unreachable store
   * throws or rejects with `STORE_UNAVAILABLE`, and the limiter's `unavailable` decides.
   */
  decide(request: StoreRequest): StoreResult | Promise<StoreResult>
  /**
   * Forgets the state of these identities under this plan, including strikes and the ids of charges so far. Blocks, bans and
   * their rungs remain.
   */
  reset(plan: Plan, identities: readonly string[]): void | Promise<void>
  /**
   * Resolves when the store can decide, or is known to be unavailable; never rejects. Absent on stores that can always
   * decide.
   */
  ready?(): Promise<{ readonly state: 'available' | 'unavailable'; readonly cause: Error | undefined }>
  /** Forgets everything, including blocks; for tests. Absent on stores where that could affect other users' data. */
  clear?(): void | Promise<void>
  /**
   * Erases all data of an identity: counts, strikes, rungs, blocks, bans, its list entries, its number of refusals, and its place in entries of
   * changes.
   * Identities are read as in `blocks`. Resolves once the data is gone; docs/blocks-and-lists.md says which data it cannot find.
   * Absent on stores that cannot do this.
   *
   * @throws SluiceError `INVALID_KEY`, or `STORE_UNAVAILABLE`, after which a part may be gone
   */
  forget?(identity: IdentityByKind): Promise<void>
  /** The store's present state. Never rejects. Absent on stores that do not report it. */
  health?(): Promise<StoreHealth>
  /** Statistics for metrics exporters, read without contacting a server; undefined once the store is closed. */
  stats?(): StoreStats | undefined
  /**
   * Calls the listener with each event of this store, synchronously. An error or rejection of the listener becomes a
   * process warning (`SLUICE_LISTENER_FAILED`). Returns a function that removes the listener. See docs/events.md.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on?<Name extends keyof StoreEvents>(event: Name, listener: (event: StoreEvents[Name]) => unknown): () => void
  /** Waits for requests in flight and closes connections that the store opened. */
  close(): Promise<void>
  /** Blocks and bans. Absent on stores without, on whose limiters `block` fails, and `ban` is rejected. */
  readonly [BANS]?: StoreBans
  /** Kept charges. Absent on stores that keep none, which reject policies with `charges`. */
  readonly [KEPT_CHARGES]?: StoreKeptCharges
  /** Requests that wait. Absent on stores that no other process uses, and where a decision costs as little as a look. */
  readonly [WAITERS]?: StoreWaiters
  /** Lists. Absent on stores without, on which `storeList` is rejected. */
  readonly [LISTS]?: ListsOfStore<StoreList>
  /** Counts of refusals by identity. Absent on stores that count none. */
  readonly [OFFENDERS]?: StoreOffenders
  /** The changes that people make by hand, with their entries. Absent on stores that keep none. */
  readonly [CHANGES]?: StoreChanges
  /** @internal The last refusals of its processes. Absent on stores that keep none. */
  readonly [LAST_REFUSALS]?: LastRefusals
  /** @internal States of our other packages. Absent on stores that no other process uses. */
  readonly [KEYED_SCRIPTS]?: KeyedScripts
  /** @internal The notes of its processes for consoles. Absent on stores that keep none. */
  readonly [SHARED_NOTES]?: SharedNotes
  /** @internal The figures of its processes. Absent on stores that cannot show them to other processes. */
  readonly [FIGURES]?: FiguresKeeper
  /** @internal The counts of this process alone. Absent on stores whose processes never decide by themselves. */
  readonly [OWN_COUNTS]?: OwnCounts
}

/** The last refusals that a store keeps. For our own packages: declarations of the store do not show them. */
export function lastRefusalsOf(store: Store): LastRefusals | undefined {
  return store[LAST_REFUSALS]
}

/** What runs scripts of our own packages in a store that processes share: declarations of the store do not show it. */
export function keyedScriptsOf(store: Store): KeyedScripts | undefined {
  return store[KEYED_SCRIPTS]
}

/** The notes that a store keeps for consoles. */
export function sharedNotesOf(store: Store): SharedNotes | undefined {
  return store[SHARED_NOTES]
}

/** The clock that decides, where a store shows it. */
export function clockOf(store: Store): Store['clock'] {
  return propertyOf(store, 'clock')
}
