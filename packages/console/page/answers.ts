// Answers of the API, as far as the page shows them.

import type { BlockEntry, LastRefusal } from './core.js'

export type {
  ChangeEntry as Change,
  LastRefusal as Refusal,
  OffendersReport as OffendersAnswer,
  StoreListEntry as ListEntry,
} from './core.js'

export interface Block extends BlockEntry {
  /** Who made it, where the log of changes knows. */
  readonly by?: string
}

export interface Identity {
  readonly kind: string
  readonly value: string | readonly string[]
  /** Whether the value is from an answer, where it may be a hash. */
  readonly counted?: boolean
}

export interface About {
  readonly operator: { readonly name: string; readonly may: 'read' | 'act' }
  readonly readOnly: boolean
  readonly store: {
    readonly kind?: string
    readonly state: 'available' | 'unavailable'
    readonly since?: number
    readonly roundTripMs?: number
    readonly cause?: string
  }
  readonly features: {
    readonly blocks: boolean
    readonly lists: readonly string[]
    /** Absent in an older console. */
    readonly listEffects?: Readonly<Record<string, readonly ('allow' | 'deny')[]>>
    readonly forget: boolean
    readonly search: boolean
    readonly changes: boolean
    /** Absent in an older console. */
    readonly traffic?: boolean
    readonly names?: boolean
  }
}

export interface Limit {
  readonly name?: string
  readonly algorithm: string
  readonly limit: number | null
  readonly windowMs: number | null
  /** The units that a bucket holds. */
  readonly capacity?: number
  readonly unit?: string
  readonly kind?: string
}

export interface Limiter {
  readonly name: string
  readonly kinds: readonly string[]
  readonly tiers: readonly string[]
  readonly limits: readonly Limit[]
}

export interface PolicyDocument {
  readonly limiter: string
  readonly version: string
  readonly error?: string
  readonly policies: readonly { readonly name: string; readonly limits: readonly Limit[] }[]
}

export interface PoliciesAnswer {
  readonly limiters: readonly Limiter[]
  readonly documents: readonly PolicyDocument[]
}

export interface LimitLeft {
  readonly name: string
  readonly algorithm: string
  readonly limit: number
  readonly windowMs: number
  readonly capacity: number
  readonly unit: string
  readonly allowed: boolean
  readonly remaining: number
  readonly retryAfterMs?: number
  readonly resetAfterMs: number
}

export interface LimitsLeft {
  readonly limiter: string
  readonly policy?: string
  readonly tier?: string
  readonly override?: { readonly index: number | string; readonly until?: number }
  readonly allowed?: boolean
  readonly reason?: string
  readonly reported?: true
  readonly needs?: readonly string[]
  readonly unless?: readonly string[]
  readonly list?: { readonly list: string; readonly kind: string; readonly effect: 'allow' | 'deny' }
  readonly retryAfterMs?: number
  readonly limits?: readonly LimitLeft[]
  readonly error?: string
}

export interface IdentityAnswer {
  readonly identity: { readonly kind: string; readonly value: string }
  readonly limits: readonly LimitsLeft[]
  readonly blocks: readonly Block[]
  readonly lists: readonly string[]
  /** Absent where they are not known. */
  readonly overrides?: readonly (SavedOverride & { readonly limiter: string })[]
  readonly stored?: Readonly<Record<string, unknown>>
}

/** The last refusals that are known. */
export interface KnownRefusals {
  readonly refusals: readonly LastRefusal[]
  /** Before it, in ms since 1970, not all are. */
  readonly knownSince?: number
}

export interface WhyAnswer extends KnownRefusals {
  readonly identity: { readonly kind: string; readonly value: string }
  /** The bytes of a body above which it is refused, even where it is admitted. */
  readonly maxBody?: number
  readonly now: readonly LimitsLeft[]
  readonly reported: readonly LimitsLeft[]
  readonly unknown: readonly LimitsLeft[]
  readonly blocks: readonly BlockEntry[]
  /** Blocks of networks that contain it. */
  readonly networks: readonly BlockEntry[]
}

export interface PageOf<Entry> {
  readonly entries: readonly Entry[]
  readonly cursor?: string
}

export interface SavedOverride {
  readonly policy: string
  readonly kind: string
  readonly value: string
  readonly limits: readonly Readonly<Record<string, unknown>>[]
  readonly until?: number
  readonly reason: string
  readonly by: string
  readonly at: number
  readonly version: number
}

interface LimitNumbers {
  readonly algorithm: string
  readonly limit: unknown
  readonly window: unknown
  readonly capacity?: number
}

export interface OverridePlan {
  readonly policy: string
  readonly kind: string
  readonly value: string
  readonly until: number
  /** The override that it would replace. */
  readonly before?: SavedOverride
  readonly version: number
  readonly canSave: boolean
  readonly lines: string
  readonly advice: readonly string[]
  readonly changes: readonly {
    readonly tier?: string
    readonly limit: string
    readonly before: LimitNumbers
    readonly after: LimitNumbers
    readonly isKept: boolean
  }[]
}

export interface Version {
  readonly version: number
  readonly by: string
  readonly at: number
  readonly differences?: readonly string[]
}

export interface RollbackPlan extends Version {
  readonly expected: number
  readonly error?: string
  readonly canSave: boolean
}

/** The effect that a block would have. */
export interface BlockPlan {
  /** As it is counted. */
  readonly identity: { readonly kind: string; readonly value: string }
  /** The block or ban that it would replace. */
  readonly before?: BlockEntry
  /** Whether this request comes from there, so that the operator would be refused, too. */
  readonly isOwn: boolean
  /** The address of this request. Absent where it is not known, and in an older console. */
  readonly ownAddress?: string
  /** Those that admit it all the same, by a list: a name, and `policy` of a document. */
  readonly allowedBy: readonly { readonly limiter: string; readonly policy?: string; readonly list: string }[]
  /** Entries within a network, of lists in the store that allow: of each the first 1,000 addresses are looked at. */
  readonly allowedInside: readonly { readonly list: string; readonly entries: number }[]
  /** Of the refusals of 15 minutes that are recorded, those of clients that it would refuse. */
  readonly refused: Counted & Pick<KnownRefusals, 'knownSince'>
  /** Decisions of the last hour on the clients that it would refuse, of the 50 with the most decisions. Absent if no process recorded traffic. */
  readonly traffic?: Counted & { readonly refused: number }
}

interface Counted {
  readonly clients: number
  /** Refusals or decisions. */
  readonly count: number
}
