import type { Plan, StoreRequest, StoreResult } from '../store/store.js'

/** A part of a memory store. */
export interface MemoryPart {
  /** Erases what is known of an identity, as text. */
  forget(identity: string): unknown
  /** Erases everything, and leaves the part as if new. */
  clear(): void
}

/**
 * A layer that may make a decision. Each is made with the one beneath it, to which it passes on what it does not decide. The counts
 * are the last one.
 */
export interface MemoryLayer extends MemoryPart {
  /** `now`: an instant of the store's clock; an earlier one charges a use that is known from then. */
  decide(request: StoreRequest, now: number): StoreResult
  reset(plan: Plan, identities: readonly string[]): void
}
