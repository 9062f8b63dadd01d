import type { Plan, StoreRequest, StoreResult } from '../../store/store.js'

/** A decision that waits for its result. */
export interface Pending {
  readonly request: StoreRequest
  /** The slot of its keys; if there are several, the first. */
  readonly slot: number
  readonly resolve: (result: StoreResult) => void
  readonly reject: (error: Error) => void
  /** Decides it if its keys turn out to be on several nodes; undefined if they are on one slot. */
  readonly apart: (() => Promise<StoreResult>) | undefined
}

/** The destination of a batch. */
export interface Destination {
  /** The slot of its keys; that of the first key if `node` is set. */
  readonly slot: number
  /** The master that receives the batch, if its keys are on several slots. */
  readonly node: string | undefined
}

/** Decisions that are sent as one script. */
export interface Batch extends Destination {
  readonly entries: readonly Pending[]
  readonly groups: ReadonlyMap<Plan, readonly Pending[]>
  /** When it was made, or sent once it is sent; by the performance clock. */
  sentAt: number
  isSent: boolean
  /** Whether its decisions check for waiting requests of other processes. */
  readonly looks: boolean
}
