/**
 * The port between policies and state. A store knows kernels, keys and its own clock; it knows no
 * policy, no request and no HTTP. Adding a store is implementing `Store` and passing `test/contract`.
 */

export type KernelName = 'bucket' | 'window' | 'log' | 'concurrency'

/** What a limit counts: the quota units of draft-ietf-httpapi-ratelimit-headers. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

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
}

/** Units that a store in several processes may take at once for one key, to spend them in this one. */
export interface LeaseTerms {
  /** Most units. */
  readonly size: number
  /** How long they may be spent, in ms from before they were asked for. */
  readonly ttlMs: number
}

/** One piece of state: what one kernel keeps under one key. */
export interface Cell {
  readonly kernel: KernelName
  /**
   * Kernel and parameters as text, part of the key: a changed limit starts fresh
   * instead of misreading old state.
   */
  readonly id: string
  /** The kernel's parameters, in the order the kernel names them. */
  readonly params: readonly number[]
  /** Which of the identities of an `StoreRequest` this cell is charged on. */
  readonly identity: number
  /** What is reported: one limit, or several that share one log. */
  readonly limits: readonly ResolvedLimit[]
  /** Present where `params` allow for units that are spent later than they are counted; equal for all cells of a plan. */
  readonly lease?: LeaseTerms
}

/** What is decided together, all or none. Plans are made once and compared by identity. */
export interface Plan {
  readonly policy: string
  readonly cells: readonly Cell[]
  /** How many identities an `StoreRequest` for this plan carries. */
  readonly identities: number
  /** How many limits all cells report. */
  readonly reports: number
}

/** Decide, and charge every cell if all have room. */
export const CONSUME = 0
/** Decide and change nothing. */
export const PEEK = 1
/** Like consume, but a refusal is charged too, as far as each limit can hold it. It takes no permits: it is not in flight. */
export const CHARGE = 2
/** Give back `costs` of what a charge took, all or less of it; once. Never past full, never a key that is not there. */
export const REFUND = 3
/** Release the permits that a charge took; cells without permits are left alone. */
export const RELEASE = 4
/** Hold the permits that a charge took for another `ttl`; cells without permits are left alone. */
export const RENEW = 5

export type Op = typeof CONSUME | typeof PEEK | typeof CHARGE | typeof REFUND | typeof RELEASE | typeof RENEW

/** One decision asked of a store. */
export interface StoreRequest {
  readonly op: Op
  readonly plan: Plan
  readonly identities: readonly string[]
  /** Units per cell, whole, 0 or more. */
  readonly costs: readonly number[]
  /** Units per cell that must have room, where that is more than what is charged; absent where it is nowhere. */
  readonly needs?: readonly number[]
  /** Names the permits that are taken in `concurrency` cells; empty where the plan has none. */
  readonly permitId: string
  /** Not to be answered by what the same was answered a moment ago: somebody waits for that to change. */
  readonly fresh?: boolean
  /** For `REFUND`: the answer to the charge that is given back. */
  readonly charge?: StoreResult
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
   * the receipt that a refund needs, or anything in an answer that refuses.
   */
  readonly values: readonly number[]
  /** Where in `values` this answer starts. */
  readonly offset: number
  /** Per cell, what its bucket had given back so far, in unit·ms; absent where none had. The other part of the receipt. */
  readonly given?: readonly number[]
  /** Present when an identity is blocked; nothing was charged then. */
  readonly block?: BlockReport
}

/** The receipt of each cell in an answer: what a refund has to know. */
export function receiptsOf({ cells }: Plan, { values, offset }: StoreResult): number[] {
  let at = offset + STRIDE - 1
  return cells.map(({ limits }) => {
    const receipt = values[at] as number
    at += STRIDE * limits.length
    return receipt
  })
}

/** Whether a limit can never hold what is asked of it. */
export function isImpossible({ plan, costs, needs }: StoreRequest): boolean {
  return plan.cells.some((cell: Cell, c) =>
    cell.limits.some(({ capacity }) => (needs?.[c] ?? (costs[c] as number)) > capacity),
  )
}

export interface BlockReport {
  readonly reason: string
  /** Milliseconds until the block ends; exact. */
  readonly remainingMs: number
}

export interface Store {
  /** The clock that it was given, in ms; what stands in for it while it is away goes by the same. */
  readonly clock?: (() => number) | undefined
  /**
   * Decides at one instant of the store's clock. A store in this process answers without a promise. One
   * that cannot be reached throws or rejects with `STORE_UNAVAILABLE`, and the limiter's `onUnavailable` decides.
   */
  decide(request: StoreRequest): StoreResult | Promise<StoreResult>
  /** Forgets the state of these identities under this plan. Blocks stay. */
  reset(plan: Plan, identities: readonly string[]): void | Promise<void>
  /** Refuses an identity under a policy name until `forMs` from now, by the store's clock. */
  block(policy: string, identity: string, forMs: number, reason: string): void | Promise<void>
  unblock(policy: string, identity: string): void | Promise<void>
  /** Settles what is in flight and ends what the store itself opened. */
  close(): Promise<void>
}
