import type { Range } from './count.js'

/** What is expected of a decision. */
export interface Expected {
  /** Undefined if either is right. */
  readonly allowed: boolean | undefined
  readonly reason?: string | undefined
  /** Undefined if no page says it. */
  readonly kind?: 'unavailable'
  readonly retryAfterMs?: Range | undefined
  readonly delayMs?: Range
  /** Of a refusal that may have the numbers of an earlier one. */
  readonly isRepeated?: true
  /** Of each limit. None where a block, a ban or a list decides. */
  readonly limits?: readonly LimitExpected[]
}

export interface LimitExpected {
  readonly remaining: Range
  /** Undefined for a cost that never fits. */
  readonly retryAfterMs: Range | undefined
  readonly resetAfterMs: Range
}
