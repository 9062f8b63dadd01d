import type { Duration } from '../util/duration.js'
import type { IdentityByKind } from './identity.js'

/** A block or ban. Plain data, as JSON holds it. */
export interface BlockEntry {
  /** The name of the policy that refuses it; absent where every policy of the store does. */
  readonly policy?: string
  /** Such as `ip`. */
  readonly kind: string
  /** As it is counted: normalised, and hashed where it is secret or long. */
  readonly value: string
  readonly reason: string
  /** When it was blocked last, and when that ends: ms since 1970, by the store's clock. Without an end: 200 years later. */
  readonly since: number
  readonly until: number
  /** How often it has been blocked, as far as the store remembers; at least 1. */
  readonly times: number
  /**
   * Present where strikes led to it: which rung it is of, from 1; how many strikes there were; and for how many ms after its end
   * the next ban is of the next rung, so that `import` takes the rung along.
   */
  readonly ban?: { readonly rung: number; readonly strikes: number; readonly forgetAfterMs?: number }
}

/** What part of the blocks to list. */
export interface BlockQuery {
  /** Those of this policy, and those of every policy. @default all */
  readonly policy?: string
  /** Those of this kind of identity. @default all */
  readonly kind?: string
  /** Those whose value begins like this. @default all */
  readonly prefix?: string
  /** Where the page before ended. @default the beginning */
  readonly cursor?: string
  /** Most of one page, 1 to 1,000. A page may have fewer, and none, though there are more. @default 100 */
  readonly max?: number
}

export interface BlockPage {
  readonly entries: readonly BlockEntry[]
  /** For the next page; absent from the last. */
  readonly cursor?: string
}

/** Which policy a block belongs to. */
export interface BlockScope {
  /** The name of a policy. @default every policy of the store */
  readonly policy?: string
}

export interface AddBlockOptions extends BlockScope {
  /** How long: whole milliseconds or a duration such as `'1h'`, up to 100 years, or `Infinity`: until it is removed. */
  readonly for: Duration
  /** Shown in verdicts of blocked requests; up to 200 characters. @default '' */
  readonly reason?: string
}

/**
 * The blocks and bans of a store. Identities are given by their kind, as `limiter.block` takes them, and are read as
 * `byIp`, `byHeader`, `byCookie` and `keyed` count them by default: `{ ip: '192.0.2.7' }`, `{ user: 'ann' }`.
 *
 * All methods reject with `STORE_UNAVAILABLE` where the store is away.
 */
export interface StoreBlocks {
  /** How many blocks and bans this process knows: identities that it refuses whatever becomes of the store. */
  readonly known: number
  /** A page of all blocks and bans that hold, in no order. One that changes meanwhile may be on two pages. */
  list(query?: BlockQuery): Promise<BlockPage>
  /** The block or ban of an identity that holds now. */
  get(identity: IdentityByKind, scope?: BlockScope): Promise<BlockEntry | undefined>
  /**
   * Blocks an identity, in place of the block that it has.
   *
   * @throws SluiceError `STORE_FULL`: a memory store without room for the block, or 100,000 networks blocked on Redis
   */
  add(identity: IdentityByKind, options: AddBlockOptions): Promise<void>
  /** Ends a block or ban, and forgets the strikes and rungs that led to it. */
  remove(identity: IdentityByKind, scope?: BlockScope): Promise<void>
  /** Ends all blocks and bans, also those that processes know which are cut off now. */
  removeAll(): Promise<void>
  /** All blocks and bans that hold. */
  export(): AsyncIterable<BlockEntry>
  /**
   * Adds what `export` gave, of this store or another; what has ended is left out, and newer entries of the store stay.
   * Resolves to how many were added.
   */
  import(entries: Iterable<BlockEntry> | AsyncIterable<BlockEntry>): Promise<number>
}
