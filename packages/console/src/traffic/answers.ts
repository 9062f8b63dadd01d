/** Fields by which traffic is filtered, in a body of `POST /api/traffic`. */
export interface TrafficFilter {
  readonly policy?: string
  /** `admitted`, `left`, the reason of a refusal, or `reported:` and the reason of one that is only reported. */
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
