import type { Verdict } from '../../verdict/verdict.js'

export interface TurnOptions {
  /** Longest wait, in ms; may be infinite. */
  readonly maxWaitMs: number
  /** Goes before requests that came up to this many ms earlier with a head start of 0. @default 0 */
  readonly headStartMs?: number
  /** Requests of one class are served in turn by client; those without one count as one client. */
  readonly client?: string | undefined
  /** Most requests that wait in the queue, this one included. @default no bound */
  readonly size?: number
}

/** `gone` when the client has left. Else a verdict: admitted and charged, or refused for longer than the wait may take. */
export type TurnResult = Verdict | 'gone'
