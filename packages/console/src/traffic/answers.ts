/** Fields by which traffic is filtered, in a body of `POST /api/traffic`. */
export interface TrafficFilter {
  /** A limiter, or a policy of a document. */
  readonly policy?: string
  /**
   * `admitted`, `left`, `refused` for every refusal that is enforced, the reason of a refusal, or `reported:` and the reason of one
   * that is only reported.
   */
  readonly reason?: string
  /** As in an answer: without ids and names. */
  readonly path?: string
  /** As in an answer, such as `192.0.2.0/24`. */
  readonly network?: string
  /** The id of a client. */
  readonly client?: string
}

/** The body of `POST /api/traffic`. */
export interface TrafficBody extends TrafficFilter {
  /** Ms since 1970, rounded down to a minute; to an hour where there are more than two hours to `to`. */
  readonly from: number
  /** Ms since 1970. At most 24 hours after `from`. */
  readonly to: number
  /** @default 'decisions' */
  readonly by?: 'decisions' | 'refused'
  /** Entries of each kind, 1 to 50. @default 10 */
  readonly top?: number
}

export interface TrafficEntry {
  /** Text of a stranger. Of a client, its id; of decisions without one, empty. */
  readonly value: string
  /** Of a client whose id resolves. */
  readonly client?: { readonly kind: string; readonly value: string }
  /** Decisions. Never too high. */
  readonly decisions: number
  /** Those that were refused, without those that were only reported. Never too high. */
  readonly refused: number
}

/** The largest values of a field. */
export interface TrafficTop {
  readonly entries: readonly TrafficEntry[]
  /** The most by which `decisions` or `refused` of an entry are too low; a value that is missing has no more than the last one, and this. */
  readonly error: number
}

/** The answer of `POST /api/traffic`. */
export interface TrafficAnswer {
  /** The start of the first step, and the store's present time, in ms since 1970. */
  readonly from: number
  readonly now: number
  readonly step: 'minute' | 'hour'
  /** Processes that recorded traffic in that time. */
  readonly processes: number
  /** Of all traffic, without filters. */
  readonly decisions: number
  readonly refused: number
  readonly policies: TrafficTop
  readonly reasons: TrafficTop
  readonly paths: TrafficTop
  readonly networks: TrafficTop
  readonly clients: TrafficTop
  /** The client of the filter; `null` for an id that resolves no more. */
  readonly client?: { readonly kind: string; readonly value: string } | null
  readonly notes: readonly string[]
}

/** A client that was near a limit when a process decided on it last. */
export interface NearEntry {
  readonly policy: string
  readonly limit: string
  /** Texts of strangers. */
  readonly client: { readonly kind: string; readonly value: string }
  /** Its id, for filters. */
  readonly id: string
  /** The share of the limit that was in use: from 0.8 to 1. */
  readonly used: number
  /** Units that were left. */
  readonly remaining: number
  /** When it was seen, and when nothing of it would be left in use, at most an hour later: ms since 1970. */
  readonly at: number
  readonly until: number
}

/** The answer of `GET /api/near`. */
export interface NearAnswer {
  readonly now: number
  /** Processes that recorded clients. */
  readonly processes: number
  /** Those with the most in use first, and after them those that have used all of it: at most 200. */
  readonly entries: readonly NearEntry[]
}

/** The body of `POST /api/tail`. */
export interface TailBody extends TrafficFilter {
  /** `after` of the answer before. */
  readonly after?: number
}

/** The answer of `POST /api/tail`: what was decided since the answer before. Ask each second. */
export interface TailAnswer {
  /** The last second that was read, since 1970. */
  readonly after: number
  /** All decisions of these seconds. */
  readonly decisions: number
  /** The share of decisions that is shown: a process shows 50 of each second. 0 to 1. */
  readonly share: number
  /** Processes that show decisions. */
  readonly processes: number
  /** The newest first, at most 1,000. */
  readonly rows: readonly {
    readonly at: number
    /** Those that decided: of a document by their own names. Of a refusal, those that refuse. */
    readonly policies: readonly string[]
    readonly reason: string
    readonly limit?: string
    readonly path?: string
    /** As text, `kind=value`. */
    readonly clients: readonly string[]
  }[]
}
