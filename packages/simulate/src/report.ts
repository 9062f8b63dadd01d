import type { CalendarWindow } from '@sluice/core/store'
import type { Proposal } from './proposal/proposal.js'

/**
 * The result of `sluice simulate`: plain data, as `--json` prints it. Identities in it are names or pseudonyms, as
 * `identities` says; texts of clients are raw, and whoever prints them escapes them.
 */
export interface SimulationReport {
  /** The version of this form. */
  readonly form: 1
  readonly identities: 'pseudonyms' | 'plain'
  readonly log: LogSummary
  /** Sentences about what limits the result: a coarse clock, skipped lines, forgotten states, a proxy that has most of the traffic. */
  readonly caveats: readonly string[]
  readonly requests: Counts
  /** Requests that some policy refuses, or would refuse if it were not in report mode. */
  readonly wouldBeRefused: number
  readonly clients: ClientCounts
  readonly policies: readonly PolicyReport[]
  readonly timeline: Timeline
  /** The clients with the most refusals, at most 100. */
  readonly refused: readonly RefusedClient[]
  /** Clients marked good that would be refused. Undefined if none were marked. */
  readonly good:
    | {
        readonly seen: number
        readonly refused: readonly RefusedClient[]
        /** The marks of good clients that no request of the log has. */
        readonly absent: readonly string[]
      }
    | undefined
  /** Undefined if the policies are not compared with others. */
  readonly against: Comparison | undefined
  readonly redis: RedisCost
  readonly splits: SplitReport
  /** What is refused is what these limits refuse. Undefined for a document that was given. */
  readonly proposal?: Proposal
}

/** Requests by groups of paths, statuses and kinds of clients: at most 12 of each, those with the most refusals first. */
export interface SplitReport {
  readonly byPaths: readonly Split[]
  readonly byStatus: readonly Split[]
  readonly byClient: readonly Split[]
}

export interface Split {
  readonly name: string
  readonly requests: number
  /** By policies in report mode, too. */
  readonly refused: number
}

/** They differ where the log's clock is coarse. The true number lies between both, inclusive, for policies that are bounded. */
export interface Interval {
  readonly min: number
  readonly max: number
}

export interface LogSummary {
  readonly files: readonly string[]
  readonly formats: readonly string[]
  readonly lines: number
  /** Lines that did not parse, with the first few as examples. */
  readonly unread: { readonly count: number; readonly examples: readonly string[] }
  /** Lines that came too late to be sorted. */
  readonly late: number
  readonly firstMs: number
  readonly lastMs: number
  readonly resolutionMs: number
  /** Whether reading ended before the logs did, as by Ctrl-C. */
  readonly isPartial: boolean
}

export interface Counts {
  readonly total: number
  readonly admitted: Interval
  readonly refused: Interval
  /** Refused by a ban or block. */
  readonly banned: Interval
  /** Admitted after a wait, or told to wait. */
  readonly delayed: Interval
}

export interface ClientCounts {
  readonly seen: number
  readonly refused: number
  /** Where the log's clock is coarse, and bounds are known. */
  readonly refusedBounds?: Interval
}

export interface PolicyReport {
  readonly name: string
  readonly mode: 'enforce' | 'report'
  readonly requests: Counts
  readonly clients: ClientCounts
  /** Whether the true numbers of requests and clients lie within the intervals, however coarse the log's clock is. */
  readonly isBounded: boolean
  readonly limits: readonly LimitReport[]
  readonly bans: { readonly begun: number; readonly longestMs: number } | undefined
  /** Waits in ms of requests that a responder delays. Undefined if none would. */
  readonly waits:
    | { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number }
    | undefined
}

export interface LimitReport {
  readonly name: string
  readonly algorithm: string
  readonly limit: number
  /** The largest length for windows of the calendar. */
  readonly windowMs: number
  readonly calendar?: CalendarWindow
  readonly unit: string
  /** Refusals in which this limit had no room. */
  readonly refused: Interval
  /** The worst window of each client, highest first, thinned to at most 400 points; `rank` starts at 1. Undefined without `--curve`. */
  readonly rank: readonly { readonly rank: number; readonly units: number }[] | undefined
  /** For candidate limits in ascending order: shares (0 to 1) of requests refused, and of clients ever refused. */
  readonly tradeOff: TradeOff | undefined
  /** The limit over the 99.9th percentile of the worst windows of good clients, or of all clients where none are marked. */
  readonly headroom: number | undefined
  /** Where the log's clock is coarse, and the policy is bounded. */
  readonly headroomBounds?: Interval | undefined
}

export interface TradeOff {
  readonly candidates: readonly {
    readonly limit: number
    readonly requestsRefused: number
    readonly clientsRefused: number
  }[]
  /** The lowest candidate by which fewer than 0.1 % of the clients are ever refused. */
  readonly suggested: number | undefined
  /**
   * The share of clients that other limits are tried on, chosen by hash: 1 for all. Below 1, the other shares are estimates. Most
   * clients that the lowest candidate refuses are among those that are tried.
   */
  readonly sample: number
}

export interface Timeline {
  readonly stepMs: number
  readonly fromMs: number
  readonly admitted: readonly number[]
  readonly refused: readonly number[]
  /** The busiest steps. */
  readonly peaks: readonly { readonly atMs: number; readonly requests: number; readonly refused: number }[]
}

export interface RefusedClient {
  /** `ip=192.0.2.7`, or a pseudonym. */
  readonly identity: string
  readonly policy: string
  readonly requests: number
  readonly refused: number
  readonly firstMs: number
  readonly agent: string | undefined
  /** The most frequent, with tokens, numbers and e-mail addresses folded. */
  readonly paths: readonly string[]
  readonly statuses: Readonly<Record<string, number>>
  readonly isGood: boolean
}

export interface Comparison {
  readonly newlyRefused: readonly RefusedClient[]
  readonly noLongerRefused: readonly RefusedClient[]
  /** Share of all requests, after less before: negative where fewer are refused. */
  readonly requestsRefused: number
  /** Share of all requests that are refused to clients beyond what each was refused before: other clients do not offset it. */
  readonly requestsNewlyRefused: number
}

/** For the whole log, by tables of `bench growth`. A range where the tables have a spread. */
export interface RedisCost {
  readonly commands: number
  readonly cpuMs: Interval | undefined
  readonly bytes: Interval | undefined
  /** Identities that one Redis key serves so often that a lease is worth it. */
  readonly hot: readonly { readonly identity: string; readonly perSecond: number }[]
}
