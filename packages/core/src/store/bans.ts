import type { MaybePromise } from '../util/when-known.js'
import type { StoreBlocks } from './blocks.js'

/** The terms of a ban: the identity, the number of strikes, and the durations. */
export interface BanTerms {
  /** Index of the identity of a `StoreRequest` that is banned. */
  readonly identity: number
  /** The name of the policy that the ban applies to; `EVERY_POLICY` for all policies of the store. */
  readonly scope: string
  /** The policy that strikes. Strikes do not count while a block of this policy is in force. */
  readonly policy: string
  /** Strikes that start a ban. */
  readonly after: number
  /** How long a strike counts, in ms. */
  readonly withinMs: number
  /** Ms after the last strike and the end of the last ban until the ladder starts again at the first rung. */
  readonly forgetAfterMs: number
  /** Duration of a ban per rung, in ms. The last rung repeats. */
  readonly rungs: readonly number[]
}

/** Maximum of rungs of a ban. */
export const MAX_RUNGS = 32

/** Stands for every policy, in place of a policy's name. No policy can have this name. */
export const EVERY_POLICY = '.store'

export interface BlockReport {
  readonly reason: string
  /**
   * Milliseconds until the block ends; exact. Verdicts have `Infinity` for a block without an end, which JSON shows as
   * `null`.
   */
  readonly remainingMs: number
  /** Present if strikes led to the ban: its rung, from 1, and the number of strikes. */
  readonly ban: { readonly rung: number; readonly strikes: number } | undefined
  /** @internal Whether the ban began with this decision. */
  readonly hasBegun: boolean | undefined
}

/** The report of a block that began earlier. */
export function blockReport(reason: string, remainingMs: number, ban: BlockReport['ban']): BlockReport {
  return { reason, remainingMs, ban: ban && { rung: ban.rung, strikes: ban.strikes }, hasBegun: false }
}

/** Strikes made apart from a decision. */
export interface Strike {
  /** The number of strikes that it counts as, 1 or more. 0 clears all strikes so far, but neither rung nor ban. */
  readonly weight: number
  /** Jitter in ms, added to a ban that this strike starts. */
  readonly jitterMs: number
  readonly reason: string
}

export interface StrikeResult {
  /** The store's clock, in ms. */
  readonly now: number
  /** The block or ban in force, if any. */
  readonly block: BlockReport | undefined
}

/** The symbol of the part of a store that blocks and bans identities: `store[BANS]`. */
export const BANS: unique symbol = Symbol.for('@sluice/core: bans')

/** Blocks, bans and strikes of a store. Its `decide` reports the blocks. */
export interface StoreBans {
  /** Blocks an identity, as text `kind=value`, under a policy name for `forMs`, by the store's clock. */
  block(policy: string, identity: string, forMs: number, reason: string): MaybePromise<void>
  /** Ends a block or ban, and forgets the strikes and rungs that led to it. */
  unblock(policy: string, identity: string): MaybePromise<void>
  /**
   * Strikes an identity, as text `kind=value`. Strikes do not count while a block or ban of the policy, the scope or
   * every policy is in force; the result is then the one that ends last. Absent on stores that only block, which reject
   * policies with `ban`.
   */
  strike?(terms: BanTerms, identity: string, strike: Strike): MaybePromise<StrikeResult>
  /**
   * Called when a policy is made whose bans apply to `EVERY_POLICY`. Decisions of this store enforce such bans from
   * then on.
   */
  enforceBansOfEveryPolicy?(): void
  /** The blocks and bans, to read and change. Absent on stores that cannot list them. */
  readonly blocks?: StoreBlocks
}
