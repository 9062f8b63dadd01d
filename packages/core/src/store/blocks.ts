import type { Duration } from '../util/duration.js'
import type { BlockEntry } from './entries.js'
import type { IdentityByKind } from './identity.js'

/** Selects the blocks to list. */
export interface BlockQuery {
  /** Blocks of this policy, and blocks of every policy. @default all */
  readonly policy?: string
  /** Blocks of this kind of identity. @default all */
  readonly kind?: string
  /** Blocks whose value begins with this text. @default all */
  readonly prefix?: string
  /** The `cursor` of the page before. @default the beginning */
  readonly cursor?: string
  /** Maximum entries per page, 1 to 1,000. A page may have fewer entries, or none, before the last one. @default 100 */
  readonly max?: number
}

export interface BlockPage {
  readonly entries: readonly BlockEntry[]
  /** The position of the next page; absent on the last page. */
  readonly cursor?: string
}

/** Which policy a block belongs to. */
export interface BlockScope {
  /** The name of a policy. @default every policy of the store */
  readonly policy?: string
}

export interface AddBlockOptions extends BlockScope {
  /**
   * Whole milliseconds or a duration such as `'1h'`, up to 100 years.
   *
   * A block for `Infinity` lasts until it is removed.
   */
  readonly for: Duration
  /** Text for verdicts of blocked requests; up to 200 characters. @default '' */
  readonly reason?: string
}

/**
 * The blocks and bans of a store. Identities have the form of `limiter.block`: `{ ip: '192.0.2.7' }`, `{ user: 'ann'
 * }`. They are read as `byIp`, `byHeader`, `byCookie` and `keyed` count them by default.
 *
 * All methods reject with `STORE_UNAVAILABLE` during an outage.
 */
export interface StoreBlocks {
  /** The number of blocks and bans that this process knows, and enforces even during an outage. */
  readonly known: number
  /** A page of the blocks and bans in force, in no order. An entry that changes meanwhile may be on two pages. */
  list(query?: BlockQuery): Promise<BlockPage>
  /** The current block or ban of an identity. */
  get(identity: IdentityByKind, scope?: BlockScope): Promise<BlockEntry | undefined>
  /**
   * Blocks an identity. Replaces its current block.
   *
   * @throws SluiceError `STORE_FULL`: a memory store without room for the block, or 100,000 networks blocked on Redis
   */
  add(identity: IdentityByKind, options: AddBlockOptions): Promise<void>
  /** Ends a block or ban, and forgets the strikes and rungs that led to it. */
  remove(identity: IdentityByKind, scope?: BlockScope): Promise<void>
  /** Ends all blocks and bans, including those known to processes that are currently disconnected. */
  removeAll(): Promise<void>
  /** All blocks and bans in force. */
  export(): AsyncIterable<BlockEntry>
  /**
   * Adds entries from `export`, of this store or another. Skips entries that have ended; newer entries of the store
   * remain. Resolves to the number of entries added.
   */
  import(entries: Iterable<BlockEntry> | AsyncIterable<BlockEntry>): Promise<number>
}
