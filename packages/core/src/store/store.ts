import type { StoreBlocks } from './blocks.js'
import type { KernelName } from './cell-kinds.js'
import type { StoreEvents } from './events.js'
import type { StoreHealth, StoreStats } from './health.js'
import type { IdentityByKind } from './identity.js'
import type { StoreLists } from './list.js'
import type { OffendersQuery, OffendersReport } from './offenders.js'
import type { StoreList } from './store-list.js'

export type { KernelName } from './cell-kinds.js'

/**
 * The port between policies and state. A store knows kernels, keys and its own clock; it knows no
 * policy, no request and no HTTP. Adding a store is implementing `Store` and passing `storeContract` of `@sluice/testing`.
 */

/**
 * What a limit counts: the quota units of draft-ietf-httpapi-ratelimit-headers, which calls bytes of requests and of
 * responses `content-bytes` alike.
 */
export type QuotaUnit = 'requests' | 'content-bytes' | 'response-bytes' | 'concurrent-requests'

/** Units of bytes: a request takes them by the size of its body or response, not by its cost. */
export type ByteUnit = Extract<QuotaUnit, `${string}-bytes`>

/** One limit with every option resolved to a number. */
export interface ResolvedLimit {
  /** Unique within its policy; what headers and problem details call it. */
  readonly name: string
  readonly algorithm: string
  /** Units per window. */
  readonly limit: number
  /** Milliseconds. For `concurrency`, how long a permit is held without being renewed. */
  readonly windowMs: number
  /** Most units that can be admitted at one instant. */
  readonly capacity: number
  /** What it counts. */
  readonly unit: QuotaUnit
  /** Whether an admitted request has to wait for its turn (`delayMs`). */
  readonly queue: boolean
  /** Over how many ms waits are spread, by identity. Verdicts add the spread; stores report exact times. */
  readonly spreadMs?: number
}

/** Units that a store in several processes may take at once for one key, to spend them in this one. */
export interface LeaseTerms {
  /** Most units. */
  readonly size: number
  /** How long they may be spent, in ms from before the request for them was sent. */
  readonly ttlMs: number
}

/** How a store in several processes may count a plan by itself in each of them for a while. */
export interface RelaxedTerms {
  /** How often, in ms, a process exchanges its counts with the others. */
  readonly syncEveryMs: number
}

/** One piece of state: what one kernel keeps under one key. */
export interface Cell {
  readonly kernel: KernelName
  /**
   * Kernel and parameters as text, part of the key: a changed limit starts fresh
   * instead of misreading old state. Equal ids mean equal parameters, but for the amounts of cells that are carried.
   */
  readonly id: string
  /**
   * Present where other cells of the plan have the same: they are on one identity, next to each other, and whatever plan has one
   * of them has all, in this order. So a store may keep their states as one, under this id.
   */
  readonly joint?: string
  /** The kernel's parameters, in the order the kernel names them. */
  readonly params: readonly number[]
  /** Which of the identities of a `StoreRequest` this cell is charged on. */
  readonly identity: number
  /** What is reported: one limit, or several that share one log. */
  readonly limits: readonly ResolvedLimit[]
  /**
   * Whether its id leaves out the amounts among `params`: cells of several plans with other amounts are one state then. What
   * another plan has charged may be more than this one admits; it is never charged by `CHARGE`.
   */
  readonly isCarried?: boolean
  /** Present where units are leased: `params` then allow for units that are spent later than they are counted. Equal for all cells of a plan. */
  readonly lease?: LeaseTerms
}

export interface SharesTurns {
  /** For how many ms a process is believed that requests wait in it. */
  readonly ttlMs: number
}

/** Which identity refusals ban, after how many, and for how long. */
export interface BanTerms {
  /** Which of the identities of a `StoreRequest` is banned. */
  readonly identity: number
  /** The name of the policy that it is banned from; `EVERY_POLICY` for all of the store. */
  readonly scope: string
  /** The policy that strikes it: while a block of that holds, strikes do not count either. */
  readonly policy: string
  /** Strikes that start a ban. */
  readonly after: number
  /** How long a strike counts, in ms. */
  readonly withinMs: number
  /** How long after the last strike and the end of the last ban the next ban is of the first rung again, in ms. */
  readonly forgetAfterMs: number
  /** How long a ban of each rung lasts, in ms. The last rung repeats. */
  readonly rungs: readonly number[]
}

/** In place of the name of a policy: blocks and bans of all of them. No policy can have this name. */
export const EVERY_POLICY = '.store'

/** The policies whose blocks and bans refuse, beside those of `EVERY_POLICY`. */
export type Banning = Pick<Plan, 'policy' | 'banningPolicy'>

/** What is decided together, all or none. Plans are made once and compared by identity. */
export interface Plan {
  readonly policy: string
  readonly cells: readonly Cell[]
  /** How many identities a `StoreRequest` for this plan carries. */
  readonly identities: number
  /** The prefix of each as text, its kind and `=`, unless a request counts another kind in its place. */
  readonly starts: readonly string[]
  /** How many limits all cells report. */
  readonly reports: number
  /** Present where refusals may ban. */
  readonly ban?: BanTerms | undefined
  /** Present where requests wait for their turn across processes: see `StoreRequest.turn`. */
  readonly sharesTurns?: SharesTurns
  /** Another policy whose blocks and bans refuse it: where several are decided under one name, each may ban for itself. */
  readonly banningPolicy?: string | undefined
  /** Present where processes that share a store may exceed the limits a little, so as not to ask it; the cells count in full then. */
  readonly relaxed?: RelaxedTerms | undefined
}

/** Decide, and charge every cell if all have room. */
export const CONSUME = 0
/** Decide and change nothing. */
export const PEEK = 1
/** Like consume, but a refusal is charged too, as far as each limit can hold it. It takes no permits: it is not in flight. */
export const CHARGE = 2
/** Refund `costs` of a charge, all or part of it, once. Never beyond full, and never in a state that is not there. */
export const REFUND = 3
/** Release the permits that a charge took; cells without permits are left alone. */
export const RELEASE = 4
/** Hold the permits that a charge took for another `ttl`; cells without permits are left alone. */
export const RENEW = 5

export type Op = typeof CONSUME | typeof PEEK | typeof CHARGE | typeof REFUND | typeof RELEASE | typeof RENEW

/** A decision for a store to make, or a change of an earlier charge. */
export interface StoreRequest {
  readonly op: Op
  readonly plan: Plan
  readonly identities: readonly string[]
  /**
   * The identities without the prefixes of the plan, where they have these. V8 copies joined texts when they are first read:
   * from the identities alone, a decision in memory takes 18 % more CPU (3 pairs). A store that needs the whole texts ignores
   * these. Leave them out when you pass a request on with other identities.
   */
  readonly values?: readonly string[] | undefined
  /** Units per cell, whole, 0 or more. */
  readonly costs: readonly number[]
  /** Units per cell that must have room; absent where no cell needs more room than it is charged. */
  readonly needs?: readonly number[]
  /** Names the permits that are taken in `concurrency` cells; empty where the plan has none. */
  readonly permitId: string
  /** Bypass the deny cache: a waiter needs the present state. */
  readonly fresh?: boolean
  /**
   * Present where a refusal by a limit strikes the identity that the plan's `ban` names: by how many ms a ban that this
   * starts is longer than its rung says.
   */
  readonly strike?: number
  /**
   * Present where a request that waits asks, of a plan that `sharesTurns`: it is refused while one of a class before its own
   * waits in another process. A request of such a plan that does not wait is refused while any does.
   */
  readonly turn?: WaitingTurn
  /** For `REFUND`, `RELEASE` and `RENEW`: the result of the charge. */
  readonly charge?: StoreResult
}

/** The waiters of one class in the queue of one limit and key, in one process. */
export interface WaitingClass {
  /** Waiters of a class count as if they had come so many ms earlier; a class for each number. */
  readonly headStartMs: number
  /** When the first of them came, less the head start, by the performance clock of the process. Of two classes the earlier goes first. */
  readonly since: number
}

/** What the request at the head of a queue sends with its decision. */
export interface WaitingTurn {
  /** Its process: 12 characters of ASCII. */
  readonly process: string
  /** The cell in whose queue it waits; -1 where that is on another slot. */
  readonly cell: number
  /** Its own class. */
  readonly class: WaitingClass
  /** The waiters in that queue of this process if it is refused, and if it is admitted. */
  readonly ifRefused: readonly WaitingClass[]
  readonly ifAdmitted: readonly WaitingClass[]
}

/** Numbers per reported limit in `StoreResult.values`. */
export const STRIDE = 4

export interface StoreResult {
  /** The store's clock at the decision, in ms. */
  readonly now: number
  readonly allowed: boolean
  /**
   * `STRIDE` integers per limit, in the order of cells and their limits: remaining units;
   * ms until this cost would be admitted (0 now, -1 never); ms until the limit is as good as new;
   * the receipt that a refund needs, which means nothing in a refusal.
   */
  readonly values: readonly number[]
  /** Where in `values` this result starts. */
  readonly offset: number
  /** Per cell, what had been refunded to its bucket so far, in unit·ms; absent where nothing had. Part of the receipt. */
  readonly refunded?: readonly number[]
  /** Present when an identity is blocked; nothing was charged then. */
  readonly block?: BlockReport
  /**
   * Present where a request waits before this one in another process: for how many ms more that is believed. Then nothing is charged,
   * and `values` say what a peek would.
   */
  readonly behindMs?: number
  /**
   * What decided, where that was not the store's state: a refusal from a moment ago (`deny-cache`), units taken ahead (`lease`),
   * what this process counts between two exchanges (`relaxed`), or the blocks that it holds while the store is away (`mirror`).
   */
  readonly source?: 'deny-cache' | 'lease' | 'relaxed' | 'mirror'
}

/** The result of a request that a block refuses. */
export function refusalBy(block: BlockReport, now: number): StoreResult {
  return { now, allowed: false, values: [], offset: 0, block }
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

/** Whether the cost exceeds what a limit can ever hold. */
export function isImpossible({ plan, costs, needs }: StoreRequest): boolean {
  return plan.cells.some((cell: Cell, c) =>
    cell.limits.some(({ capacity }) => (needs?.[c] ?? (costs[c] as number)) > capacity),
  )
}

export interface BlockReport {
  readonly reason: string
  /** Milliseconds until the block ends; exact. In verdicts `Infinity` for one without an end, which JSON shows as `null`. */
  readonly remainingMs: number
  /** Present where strikes led to it: which rung it is of, from 1, and how many strikes there were. */
  readonly ban?: { readonly rung: number; readonly strikes: number }
  /** @internal Whether the ban began with this decision. */
  readonly hasBegun?: boolean
}

/** Strikes that no decision makes by itself. */
export interface Strike {
  /** How many strikes it counts for, 1 or more; 0 forgets all strikes so far, but neither rung nor ban. */
  readonly weight: number
  /** By how many ms a ban that it starts is longer than its rung says. */
  readonly jitterMs: number
  readonly reason: string
}

export interface StrikeResult {
  /** The store's clock, in ms. */
  readonly now: number
  /** The block or ban that holds now, if one does. */
  readonly block: BlockReport | undefined
}

export interface Store {
  /** The clock that it was given, in ms. The fallback during an outage uses the same. */
  readonly clock?: (() => number) | undefined
  /** The lists that allow and deny identities for every policy of this store; limiters ask them before the store. */
  readonly lists?: StoreLists | undefined
  /**
   * Decides at one instant of the store's clock. A store in this process returns no promise. One
   * that cannot be reached throws or rejects with `STORE_UNAVAILABLE`, and the limiter's `unavailable` decides.
   */
  decide(request: StoreRequest): StoreResult | Promise<StoreResult>
  /** Forgets the state of these identities under this plan, strikes among it. Blocks, bans and their rungs stay. */
  reset(plan: Plan, identities: readonly string[]): void | Promise<void>
  /** Refuses an identity, as text `kind=value`, under a policy name until `forMs` from now, by the store's clock. */
  block(policy: string, identity: string, forMs: number, reason: string): void | Promise<void>
  /** Ends a block or ban, and forgets the strikes and rungs that led to it. */
  unblock(policy: string, identity: string): void | Promise<void>
  /**
   * Strikes an identity, as text `kind=value`. While a block or ban holds, of the policy, the scope or every policy, strikes do not
   * count, and the one that ends last is the result. Absent from
   * stores that do not ban: a policy with `ban` is refused on them.
   */
  strike?(terms: BanTerms, identity: string, strike: Strike): StrikeResult | Promise<StrikeResult>
  /**
   * Reports the waiters in a queue of this process, of a plan that `sharesTurns`, to the others; none when it is empty. They believe it for
   * the plan's `ttlMs`. Absent from stores that no other process uses.
   */
  reportWaiting?(
    plan: Plan,
    identities: readonly string[],
    queue: Pick<WaitingTurn, 'process' | 'cell'>,
    classes: readonly WaitingClass[],
  ): Promise<void>
  /**
   * Whether the permits of a plan may have room for a cost: true where that is not known. Requests that wait for permits ask it every
   * 50 ms, all of them at once, and ask for a decision only then. Absent from stores where a decision costs as little.
   */
  mayHavePermits?(plan: Plan, identities: readonly string[], cost: number): Promise<boolean>
  /** Called when a policy is made whose bans hold for `EVERY_POLICY`: decisions of this store enforce them from now on. */
  enforceBansOfEveryPolicy?(): void
  /** Resolves when decisions can be asked of it, or it is known that they cannot; never rejects. Absent where they always can. */
  ready?(): Promise<{ readonly state: 'available' | 'unavailable'; readonly cause: Error | undefined }>
  /** Forgets everything, blocks too: for tests. Absent where that could reach what others keep there. */
  clear?(): void | Promise<void>
  /** The blocks and bans, to see and to change. Absent from stores that cannot list them. */
  readonly blocks?: StoreBlocks
  /**
   * Erases what is kept of an identity: what limits have counted, strikes, rungs, blocks, bans, entries of lists by that
   * identity, and how often it was refused. Identities are read as `blocks` reads them. Resolves once it is gone;
   * see docs/blocks.md for what this cannot find. Absent from stores that cannot.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`, after which a part may be gone
   */
  forget?(identity: IdentityByKind): Promise<void>
  /**
   * Called with every request that was refused in the end, by the identities that had no room or are blocked, for each policy that
   * refuses it: of a document its own policies, not the limiter that decides on them. Absent from stores that do not count refusals.
   * Called without `this`.
   */
  readonly noteRefusal?: ((policy: string, identities: readonly string[]) => void) | undefined
  /**
   * The identities that a policy refused most. Absent from stores that do not know.
   *
   * @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE`
   */
  offenders?(query: OffendersQuery): Promise<OffendersReport>
  /**
   * A list that this store keeps, by its name of 1 to 64 letters, digits and `_.:-`; one that has no entries where there
   * was none. Absent from stores that keep none.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  list?(name: string): StoreList
  /** How it is now. Never rejects. Absent from stores that do not say. */
  health?(): Promise<StoreHealth>
  /** The same without asking anything of a server, and what exporters of metrics read; undefined once it is closed. */
  stats?(): StoreStats | undefined
  /**
   * Calls back with each event of this store, synchronously. What a listener throws, or rejects with, becomes a warning of the
   * process (`SLUICE_LISTENER_FAILED`). Returns what ends it. See docs/events.md.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on?<Name extends keyof StoreEvents>(event: Name, listener: (event: StoreEvents[Name]) => unknown): () => void
  /**
   * @internal What is counted in this process of what a request asks for, as a peek would say it, while the store is away.
   * Undefined where nothing is. Absent from stores that never decide by themselves.
   */
  lastKnown?(request: StoreRequest): StoreResult | undefined
  /** Waits for what is in flight and closes what the store itself opened. */
  close(): Promise<void>
}
