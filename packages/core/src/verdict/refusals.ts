/**
 * The reason of a refusal: over a limit, never admissible at this cost, on a deny list, blocked by hand, or banned for
 * strikes. `unavailable`: nothing could decide. `left`: the client left.
 */
export type RefusalReason = 'limited' | 'impossible' | 'denied' | 'blocked' | 'banned' | 'unavailable' | 'left'

/** What a reason means for replies. */
interface Refusal {
  /** Whether a list, a block or a ban refuses the client, so that no responder admits it. */
  readonly isBarred: boolean
  /** Undefined where the responder chooses it. */
  readonly status: 403 | 429 | 503 | undefined
  /** In a line of text for the client. Undefined where the status says it. */
  readonly words: string | undefined
}

const NO_QUOTA = { isBarred: false, status: 429, words: undefined } as const

/** All that depends on the reason alone. */
export const REFUSALS: Readonly<Record<RefusalReason, Refusal>> = {
  limited: { ...NO_QUOTA, status: undefined },
  impossible: NO_QUOTA,
  denied: { isBarred: true, status: 403, words: 'Forbidden' },
  blocked: { isBarred: true, status: 429, words: 'Blocked' },
  banned: { isBarred: true, status: 429, words: 'Banned' },
  unavailable: { ...NO_QUOTA, status: 503 },
  left: NO_QUOTA,
}
