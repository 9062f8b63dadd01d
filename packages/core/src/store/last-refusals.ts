/** A refused request. Plain data, as JSON holds it. */
export interface LastRefusal {
  /** When it was refused: ms since 1970, by the clock of the process. */
  readonly at: number
  /** The limiter; of policies that are data, those that refuse. */
  readonly policy: string
  /** The limit with the longest refusal; absent where no limit refuses. */
  readonly limit?: string
  readonly reason: string
  /** The path of the request, without its query; absent without HTTP. */
  readonly path?: string
  /** Its identities as text, `kind=value`. */
  readonly identities: readonly string[]
}

/** Refusals of the last 15 minutes, as far as they are kept. */
export interface KeptRefusals {
  readonly refusals: readonly LastRefusal[]
  /** When the newest one was refused that is not kept: ms since 1970. Undefined if all are. */
  readonly droppedAt: number | undefined
}

/** The last refusals of the processes that note theirs. */
export interface LastRefusals {
  note(refusal: LastRefusal): void
  /** Those of all processes that are known, newest first. While it is called, other processes write theirs each second. */
  read(): Promise<KeptRefusals>
}

/** The symbol of the part of a store that keeps the last refusals. */
export const LAST_REFUSALS: unique symbol = Symbol.for('@sluice/core: last refusals')
