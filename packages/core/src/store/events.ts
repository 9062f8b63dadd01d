import type { WarningEvent } from '../util/warnings.js'
import type { ChangeEntry } from './entries.js'
import type { Identity } from './identity.js'

/** A store has become unavailable, or available again. */
export interface StoreEvent {
  readonly state: 'available' | 'unavailable'
  /** The error that led to the state; undefined if the store is available. */
  readonly cause: Error | undefined
  /** The server's address. In a cluster, each master has its own events. */
  readonly node: string
}

/** An identity was blocked by hand, in this process. */
export interface BlockEvent {
  /** Undefined if every policy of the store blocks it. */
  readonly policy: string | undefined
  readonly identity: Identity
  /** Milliseconds from now; `Infinity` for a block without an end. */
  readonly forMs: number
  readonly reason: string
}

/** A block or ban was ended by hand, in this process. */
export interface UnblockEvent {
  /** Undefined if it applied to every policy of the store. */
  readonly policy: string | undefined
  readonly identity: Identity
}

/** A memory store ended a ban early because it had no room for all bans. */
export interface BanEvictedEvent {
  /** Undefined if it applied to every policy of the store. */
  readonly policy: string | undefined
  readonly identity: Identity
  /** Which step of the ladder it was, from 1. */
  readonly rung: number
  /** Remaining duration of the ban, in ms. */
  readonly remainingMs: number
}

/**
 * The events of `store.on()`. `change` comes from `store.changes`, and `block` and `unblock` come from `store.blocks.add` and `remove`; limiters emit those of
 * their own methods.
 */
export interface StoreEvents {
  readonly store: StoreEvent
  readonly block: BlockEvent
  readonly unblock: UnblockEvent
  readonly 'ban-evicted': BanEvictedEvent
  /** A change that this process recorded has ended. */
  readonly change: ChangeEntry
  readonly warning: WarningEvent
}

export const STORE_EVENTS = ['store', 'block', 'unblock', 'ban-evicted', 'change', 'warning'] as const
