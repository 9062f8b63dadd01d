import type { Plan, StoreRequest, StoreResult } from '../../store/store.js'

/**
 * A place where a decision may be made. Each is made with the one beneath it, which it asks for what it does not decide, and
 * which it sends what is to be charged or refunded later. None calls one above: these are told of results and changes.
 */
export interface Layer {
  /** Decides, or asks the next. Throws where it is known that Redis cannot be asked. */
  decide(request: StoreRequest): StoreResult | Promise<StoreResult>
  /** Called with every reply of Redis, in the order of decisions, before its caller gets it; `sentAt` is by the performance clock. */
  onResult?(request: StoreRequest, result: StoreResult, slot: number, sentAt: number): void
  /** Called before the command of a change is sent. What it returns is called once the reply is in, or has failed. */
  change?(what: Change): (() => void) | undefined
  /** Sends what is to be sent yet, and ends timers. */
  close(): Promise<void>
}

/** What becomes of the state of identities by another way than a decision. */
export type Change =
  | { readonly kind: 'reset'; readonly plan: Plan; readonly identities: readonly string[] }
  /** `policy` may be `EVERY_POLICY`. */
  | { readonly kind: 'block' | 'unblock' | 'ban'; readonly policy: string; readonly identity: string }
  | { readonly kind: 'unblock all' }
  | { readonly kind: 'forget'; readonly identity: string }
