import type { DecisionOutcome } from '../limiter/events.js'
import type { Histogram, StoreStats } from '../store/health.js'
import type { DecisionSource } from '../verdict/decision.js'

/** Decisions that are final: those that `onVerdict` gets. */
export interface DecisionCount {
  readonly policy: string
  /** '' without tiers. */
  readonly tier: string
  /** The limit that refuses for longest; '' where no limit refuses. */
  readonly limit: string
  readonly outcome: DecisionOutcome
  readonly source: DecisionSource
  /** Whether they are not enforced: `enforce: { mode: 'report' }`, or keys that `enforce.percent` leaves out. */
  readonly reported: boolean
  readonly count: number
}

/** Durations of decisions, in ms, measured for one in `MEASURED_EVERY` of them. */
export interface DurationCounts {
  readonly policy: string
  readonly source: DecisionSource
  readonly histogram: Histogram
}

export interface QueueCounts {
  readonly policy: string
  /** How many wait now, in this process. */
  readonly waiting: number
  /** The outcomes of requests that have waited. */
  readonly admitted: number
  readonly refused: number
  readonly left: number
  /** For how long they have waited, in ms. */
  readonly histogram: Histogram
}

/** Permits of `concurrency` limits, in units. */
export interface PermitCounts {
  readonly policy: string
  /** Taken by this process, and neither released nor lapsed. */
  readonly active: number
  readonly taken: number
  readonly released: number
  /** Not released within their `ttl`. */
  readonly lapsed: number
}

/** Strikes, bans and blocks that this process has made, without those of other processes. */
export interface AbuseCounts {
  /** '' for blocks of every policy of a store. */
  readonly policy: string
  readonly strikes: number
  readonly bans: number
  readonly blocks: number
  readonly unblocks: number
}

/**
 * How much of a limit decisions needed: what was in use before, and their own cost, as a share of the limit's capacity. An
 * admitted request needed 1 at most, a refused one more. A lower limit would have refused at most the decisions that needed more
 * than it, and `refusedElsewhere`, if `capacity` is above 0.
 */
export interface UseCounts {
  readonly policy: string
  /** '' without tiers. */
  readonly tier: string
  /** The policy to which the limit belongs, and its tier after a point, such as `login.free`: of a document its own, not the limiter. */
  readonly ownPolicy: string
  readonly limit: string
  /**
   * Units of the limit. 0 if what a lower limit would have refused has no bound: another cost than 1 was charged; or units were
   * refunded, settled, leased, reserved, or waited for. -1 if the units differed between decisions.
   */
  readonly capacity: number
  /** Decisions of the limiter that another limit or a ban refused. */
  readonly refusedElsewhere: number
  readonly decisions: number
  /** Those that needed more than the limit. */
  readonly beyond: number
  /** How much a share of decisions needed at most: rounded up to a hundredth; `Infinity` for more than the limit. */
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  /** By hundredths of the limit: `counts[i]` needed up to (i + 1) / 100; the 101st more than the limit. */
  readonly counts: readonly number[]
}

/** Units of the user's own, such as tokens, that this process has charged and refunded. */
export interface UnitCounts {
  readonly policy: string
  readonly unit: string
  readonly charged: number
  readonly refunded: number
}

/** Responses of services to requests that wait their turn, and what they told last of any key. */
export interface OutboundCounts {
  readonly policy: string
  readonly accepted: number
  /** By a rate limit, such as 429. */
  readonly refused: number
  /** Refused, and no wait helps. */
  readonly final: number
  /** Without a response. */
  readonly failed: number
  /** Kept back, as the service fails. */
  readonly unsent: number
  /** The latest instant until which a service wants no requests: ms since the epoch; 0 if none did. */
  readonly heldUntil: number
  /** At most 20. */
  readonly limits: readonly {
    readonly name: string
    /** The word of the service for its units, such as `requests`. */
    readonly unit: string
    readonly limit: number | undefined
    readonly remaining: number | undefined
    /** When its units are back: ms since the epoch. */
    readonly resetAt: number | undefined
    /** When a response told it last: ms since the epoch. */
    readonly toldAt: number
  }[]
}

/** Decisions that are not enforced. */
export interface ReportedCounts {
  readonly policy: string
  readonly decisions: number
  /** Those that would have been refused. */
  readonly refused: number
}

export interface StoreCounts extends StoreStats {
  /** Which one: its kind, and from the second of a kind its number, such as `redis` or `memory-2`. */
  readonly store: string
}

export interface WarningCount {
  /** Such as `SLUICE_STORE_UNAVAILABLE`. */
  readonly code: string
  readonly count: number
}

/** The counts of this process, in plain numbers. Rows without counts are left out. No row has a key of a client. */
export interface Snapshot {
  /** When counting first began: ms since the epoch. */
  readonly since: number
  readonly decisions: readonly DecisionCount[]
  readonly durations: readonly DurationCounts[]
  readonly queues: readonly QueueCounts[]
  readonly permits: readonly PermitCounts[]
  readonly abuse: readonly AbuseCounts[]
  readonly used: readonly UseCounts[]
  readonly units: readonly UnitCounts[]
  readonly reported: readonly ReportedCounts[]
  readonly outbound: readonly OutboundCounts[]
  /** Stores that limiters use; at most 100. */
  readonly stores: readonly StoreCounts[]
  readonly warnings: readonly WarningCount[]
  readonly policiesReloaded: number
}
