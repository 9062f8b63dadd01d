import type { Plan, StoreRequest, StoreResult } from '../../store/store.js'
import type { ResultObserver } from '../batching/batch-runs.js'

/**
 * A layer that may make a decision. Each layer is constructed with the one beneath it. It passes on requests that it
 * does not decide, and later charges and refunds. No layer calls one above; those are notified of results and changes.
 */
export interface Layer extends Partial<ResultObserver> {
  /** Decides, or passes the request to the next layer. Throws if Redis is known to be unavailable. */
  decide(request: StoreRequest): StoreResult | Promise<StoreResult>
  /** Called before the command of a change is sent. Returns a function to call once the reply has arrived or failed. */
  change?(what: Change): (() => void) | undefined
  /** Sends pending commands and ends timers. */
  close(): Promise<void>
}

/** A change of identities' state by other means than a decision. */
export type Change =
  | { readonly kind: 'reset'; readonly plan: Plan; readonly identities: readonly string[] }
  /** `policy` may be `EVERY_POLICY`. */
  | { readonly kind: 'block' | 'unblock' | 'ban'; readonly policy: string; readonly identity: string }
  | { readonly kind: 'unblock all' }
  | { readonly kind: 'forget'; readonly identity: string }
