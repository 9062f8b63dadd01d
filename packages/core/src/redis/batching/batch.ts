import type { Plan, StoreRequest, StoreResult } from '../../store/store.js'

/** A decision that waits for its result. */
export interface Pending {
  readonly request: StoreRequest
  /** Of its keys; of several, the first. */
  readonly slot: number
  readonly resolve: (result: StoreResult) => void
  readonly reject: (error: Error) => void
  /** How it is decided where its keys turn out to be on several nodes; undefined where they are on one slot. */
  readonly apart: (() => Promise<StoreResult>) | undefined
}

/** Where a batch goes. */
export interface Destination {
  /** Of its keys; where it is sent to a node, of the first of them. */
  readonly slot: number
  /** The master that it is sent to, where its keys are of several slots. */
  readonly node?: string | undefined
}

/** What is sent as one script. */
export interface Batch extends Destination {
  readonly entries: readonly Pending[]
  readonly groups: ReadonlyMap<Plan, readonly Pending[]>
  /** By the performance clock: when it was made, and once it is sent, when that was. */
  sentAt: number
  isSent: boolean
  /** Whether its decisions look for requests that wait for their turn across processes. */
  readonly looks: boolean
}
