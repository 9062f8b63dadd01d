/** Clients and networks above a limit that a proposal names at most. */
export const MAX_ABOVE = 100

/** Limits that a log suggests: plain data. Clients in it are names or pseudonyms, as the report says. */
export interface Proposal {
  /** A document of policies in report mode, as `sluice validate` accepts it. */
  readonly document: object
  /** Whether limits follow from clients marked good, or are a guess from the clients that nearly all others are below. */
  readonly basis: 'good clients' | 'guess'
  /** The clients that limits follow from. */
  readonly clients: number
  /** The limits of the document, those of all paths first. */
  readonly limits: readonly ProposedLimit[]
  /** Every group of paths with much traffic, those of all paths first, and the curve of each window. */
  readonly groups: readonly ProposedGroup[]
  /** The clients and networks above a limit of the document, by how far, at most 100. */
  readonly above: readonly ClientAtLimit[]
  /** Every client above a limit of the document, or in a network above one. */
  readonly touched: number
  /** The clients that come closest to a limit of the document without being above any, at most 20. */
  readonly below: readonly ClientAtLimit[]
}

export interface WindowOfGroup {
  /** The pattern of the paths. Undefined for all paths. */
  readonly paths: string | undefined
  readonly counts: 'clients' | 'networks'
  readonly windowMs: number
}

export interface ProposedLimit extends WindowOfGroup {
  readonly policy: string
  readonly limit: number
  /** Clients, or networks, with a worst window above the limit. */
  readonly refused: number
  /** Other limits in its place, and itself, in ascending order. */
  readonly steps: readonly LimitStep[]
}

/** Whom a limit refuses. */
export interface LimitStep {
  readonly limit: number
  readonly refused: number
  /** Good clients among these. */
  readonly good: number
}

export interface ProposedGroup {
  readonly paths: string | undefined
  readonly requests: number
  readonly clients: number
  readonly windows: readonly ProposedWindow[]
}

/** The worst windows of one length, of the clients or networks of a group. */
export interface ProposedWindow extends WindowOfGroup {
  readonly clients: number
  /** Of the clients' worst windows. */
  readonly median: number
  readonly p999: number
  readonly max: number
  /** The greatest of good clients. Undefined where none is marked. */
  readonly good: number | undefined
  /** The limit that follows. Undefined where the log says too little. */
  readonly limit: number | undefined
  /** Clients above it. */
  readonly refused: number
  /** Whether the limit is in the document: others refuse nobody else. */
  readonly isProposed: boolean
  /** The worst windows, highest first, thinned; `rank` starts at 1. */
  readonly rank: readonly { readonly rank: number; readonly units: number }[]
}

/** A client, or a network, and the limit that it is farthest above, or closest to. */
export interface ClientAtLimit extends WindowOfGroup {
  /** `ip=192.0.2.7`, `ip=192.0.2.0/24`, or a pseudonym. */
  readonly identity: string
  readonly policy: string
  readonly limit: number
  /** Its most requests in a window of this length. */
  readonly worst: number
  readonly requests: number
  readonly isGood: boolean
  /** Of a network: how many clients of the log are in it. */
  readonly clients?: number
}
