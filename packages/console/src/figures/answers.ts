import type { DecisionOutcome, Histogram, OutboundEvent } from '@sluice/core'

/**
 * Answers of the routes for figures. All times are ms since 1970 by the store's clock, all durations ms, unless a field says
 * otherwise. Names of policies and limits are texts of strangers: never markup.
 */

/** The source of a decision, as the label `source` of the metrics. `local` and `mirror`: without the store. */
export type FigureSource = 'store' | 'lease' | 'relaxed' | 'deny-cache' | 'list' | 'local' | 'mirror' | 'response'

/** Decisions that are alike. Rows without decisions are left out. */
export interface DecisionLabels {
  /** `other`: policies beyond the bound of names, together. */
  readonly policy: string
  /** The limit that refuses for longest; '' where no limit refuses. `other`: limits beyond the bound, together. */
  readonly limit: string
  /** `admitted`; `left`: the client left while it waited, which is no refusal; each other one is a refusal. */
  readonly outcome: DecisionOutcome
  readonly source: FigureSource
  /** Whether they are not enforced: `mode: 'report'`, or keys that `enforce.percent` leaves out. */
  readonly reported: boolean
}

export interface DecisionRow extends DecisionLabels {
  /** Since the processes that are alive began to count. */
  readonly count: number
  /** In the last second or so. */
  readonly perSecond: number
}

/** Four numbers of all policies. Rows whose source is `response` are in none: their requests are counted as admitted, too. */
export interface Totals {
  readonly decisions: number
  /** Neither admitted nor left. */
  readonly refused: number
  /** Would be refused; not enforced. */
  readonly reported: number
  /** Decided without the store: source `local` or `mirror`. */
  readonly alone: number
}

/** How much of a limit decisions needed; `bounds` are shares of the limit, and the last of `counts` needed more than all of it. */
export interface UsedRow {
  /** That of the limit: a limiter, or a policy of a document, with its tier after a point. `other`: limits beyond the bound, together. */
  readonly policy: string
  readonly limit: string
  /** Units of the limit; of a bucket, what it holds. `null`: nothing bounds what a lower limit would have refused. */
  readonly capacity: number | null
  /** Set where that is because its size has changed since the processes began, or differs between them or between clients. */
  readonly resized?: true
  /** Decisions that another limit of the limiter, or a ban, refused: a lower limit may refuse as many more than needed more than it. */
  readonly refusedElsewhere: number
  /** `counts[i]` needed up to `bounds[i]`, and more than the bound before. One more than `bounds`. */
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly decisions: number
  /** The smallest bound that this share of decisions needed at most; `null`: more than the limit. */
  readonly p50: number | null
  readonly p90: number | null
  readonly p99: number | null
}

/** Waiting requests and held permits of a policy, now. */
export interface GaugeRow {
  readonly policy: string
  /** Requests that wait for their turn. */
  readonly waiting: number
  /** Units of permits of `concurrency` limits that are held. */
  readonly permits: number
}

/** Calls to other services by a policy, now. `POST /api/figures/history` has their responses. */
export interface OutboundRow {
  readonly policy: string
  /** The latest instant until which a service wants no requests, in ms since 1970; `null` if none does. */
  readonly heldUntil: number | null
  readonly quotas: readonly QuotaRow[]
}

/** A limit as a service told it last, to any process and for any key. `null`: not told. */
export interface QuotaRow {
  /** The service chose it, as it did the unit: text of a stranger. At most 64 characters. */
  readonly limit: string
  /** At most 64 characters. */
  readonly unit: string
  readonly units: number | null
  /** `null` also once its units are back: nothing was told since. */
  readonly remaining: number | null
  /** When its units are back, in ms since 1970. */
  readonly resetAt: number | null
  /** Ms since 1970. */
  readonly toldAt: number
}

/** Quantiles of the time until the store has decided, in ms: the bound of a bucket, `null` above the last one or without any. */
export interface RoundTrip {
  readonly p50: number | null
  readonly p99: number | null
  /** Decisions measured: one in 16. */
  readonly measured: number
}

/** A store as a process sees it. */
export interface StoreFigures {
  /** `redis`, `memory`, `memory-2` … */
  readonly store: string
  readonly state: 'available' | 'unavailable'
  /** When this state began, by the clock of that process. */
  readonly since: number
  /** Decisions that wait for a reply. */
  readonly pending: number
}

/** A process that reports. */
export interface ProcessFigures {
  /** Random, of this run of the process. */
  readonly id: string
  readonly host: string
  readonly pid: number
  /** When it began to count, by its own clock. */
  readonly startedAt: number
  /** Time since its last report. It is left out after 10 s. */
  readonly ageMs: number
  /** Whether it records its refusals for consoles, by a console or by `recordRefusals`. Absent for an earlier version. */
  readonly recordsRefusals?: boolean
  readonly totals: Totals
  readonly perSecond: Totals
  readonly roundTrip: RoundTrip
  readonly stores: readonly StoreFigures[]
  readonly waiting: number
  readonly permits: number
}

/** The figures of all processes together. */
export interface SumFigures {
  readonly totals: Totals
  readonly perSecond: Totals
  /** At most 256, the largest first; the others are added up as policy `other`. */
  readonly rows: readonly DecisionRow[]
  /** At most 256; the others are added up as policy `other`. */
  readonly gauges: readonly GaugeRow[]
  /** At most 256; the others are added up as policy `other`. */
  readonly used: readonly UsedRow[]
  /** Calls to other services: at most 128 policies with 256 quotas together. Further ones are left out. */
  readonly outbound: readonly OutboundRow[]
  readonly roundTrip: RoundTrip
  /** Times until the store has decided, in ms. */
  readonly durations: Histogram
  readonly waiting: number
  readonly permits: number
  /** Processes for which a store is unavailable. */
  readonly away: number
}

/** The answer of `GET /api/figures`. */
export interface FiguresAnswer {
  readonly at: number
  /**
   * Where figures come from. `processes`: every process whose store has `report: liveFigures()`, and this one. `process`: this one alone,
   * as its store is in memory.
   */
  readonly from: 'processes' | 'process'
  readonly sum: SumFigures
  /** At most 200, those with the most decisions a second first. Empty where none has reported in the last 10 s. */
  readonly processes: readonly ProcessFigures[]
  /** Processes that report, also those beyond 200. */
  readonly processCount: number
  /** Whether `POST /api/offenders` has an answer; otherwise the way to turn it on, in a sentence. */
  readonly offenders: { readonly counted: true } | { readonly counted: false; readonly hint: string }
  /** Sentences for the operator: processes of another version that are left out, values that cannot be read, no process at all. */
  readonly notes: readonly string[]
}

/** The body of `POST /api/figures/history`. */
export interface HistoryBody {
  /** Ms since 1970. Rounded down to a step. */
  readonly from: number
  /** Ms since 1970, after `from`. The step that contains it is the last one. At most 1,500 minutes or 2,200 hours from `from`. */
  readonly to: number
  /** Minutes are kept for 7 days, hours for 90. */
  readonly step: 'minute' | 'hour'
}

/** One number for each step. */
export type Column = readonly number[]

export interface HistoryRow extends DecisionLabels {
  readonly counts: Column
}

/** Responses of other services to the calls that a policy limits. */
export interface ResponsesRow {
  readonly policy: string
  readonly outcome: OutboundEvent['outcome']
  readonly counts: Column
}

/** The answer of `POST /api/figures/history`: columns of equal length. A report counts in the minute in which it was made. */
export interface HistoryAnswer {
  readonly step: 'minute' | 'hour'
  /** The store's present time: the last step may not be over. */
  readonly now: number
  /** The start of each step, ascending, without gaps. */
  readonly at: Column
  /** Processes that reported in a step. 0: there are no figures of it, which is not the same as no decision. */
  readonly processes: Column
  readonly decisions: Column
  readonly refused: Column
  readonly reported: Column
  readonly alone: Column
  /** Time in which processes were without a store, in ms, of all processes together. */
  readonly awayMs: Column
  /** At most 256, the largest first; the others are added up as policy `other`. */
  readonly rows: readonly HistoryRow[]
  /** At most 256, the largest first; the others are added up as policy `other`. */
  readonly responses: readonly ResponsesRow[]
  /** Quantiles of the time until the store has decided, in ms; `null` without any, or above the last bound. */
  readonly roundTrip: { readonly p50: readonly (number | null)[]; readonly p99: readonly (number | null)[] }
  readonly notes: readonly string[]
}

/**
 * A line of `GET /api/stream` (`application/x-ndjson`): read it with `fetch` and a reader of the body. Lines with another `type` are
 * from a newer version: skip them. Where the stream cannot be had (503: too many), poll `GET /api/figures` every 5 s.
 */
export type StreamMessage = FiguresMessage | ProblemMessage | HeartbeatMessage | EndMessage

/** Each second. */
export interface FiguresMessage extends FiguresAnswer {
  readonly type: 'figures'
}

/** The figures cannot be read, such as during an outage. The stream goes on: it tries again each second, and repeats this each 10 s. */
export interface ProblemMessage {
  readonly type: 'problem'
  readonly status: number
  readonly detail: string
}

/** Each 10 s without another line. Without any line for 30 s, the connection is lost: open another stream. */
export interface HeartbeatMessage {
  readonly type: 'heartbeat'
}

/** The last line. `refused`: do not open another one. `closed`: the console ended; `time`: after 1 h, open another one. */
export interface EndMessage {
  readonly type: 'end'
  readonly reason: 'refused' | 'closed' | 'time'
  readonly detail: string
}
