import type { ConsistencyOptions, Duration } from '@sluice/core'

/** A document that is valid by the schema. */
export interface PolicyDocument {
  readonly version: 1
  readonly carry?: Carry
  readonly policies: Readonly<Record<string, PolicyData>>
  readonly overrides?: readonly OverrideData[]
}

/** Whether used units still count when a limit's amount changes. */
export type Carry = 'keep' | 'reset'

export interface PolicyData {
  readonly description?: string
  readonly match?: MatchData
  readonly key?: KeyData
  readonly limits?: readonly LimitData[]
  readonly tier?: string
  readonly tiers?: Readonly<Record<string, readonly LimitData[]>>
  readonly anonymous?: 'error' | 'by-ip' | 'skip'
  readonly cost?: CostData | Readonly<Record<string, CostData>>
  readonly count?: { readonly only: 'success' | 'failure' | number; readonly within?: Duration }
  readonly enforce?: { readonly mode?: 'enforce' | 'report'; readonly percent?: number }
  readonly sharedTurns?: boolean | { readonly ttl?: string | number }
  readonly respond?: RespondData
  readonly consistency?: ConsistencyOptions
  readonly ban?: BanData
  readonly allow?: ListsData
  readonly deny?: ListsData
  readonly allowLists?: readonly string[]
  readonly denyLists?: readonly string[]
}

/** Units, or the name of a resolver. */
export type CostData = number | string

export interface MatchData {
  readonly methods?: readonly string[]
  readonly paths?: readonly string[]
  readonly hosts?: readonly string[]
  readonly headers?: Readonly<Record<string, string | boolean>>
}

/** A kind, or `{ ip: { ipv4Prefix, ipv6Prefix } }`. */
export type PartOfKey = string | { readonly ip: { readonly ipv4Prefix?: number; readonly ipv6Prefix?: number } }

export type KeyData = PartOfKey | readonly PartOfKey[]

/** Options of the constructor that `algorithm` names. */
export interface LimitData {
  readonly algorithm?: string
  readonly name?: string
  readonly key?: KeyData
  readonly respond?: RespondData
  readonly [option: string]: unknown
}

export type RespondData = string | Readonly<Record<string, object>>

export interface BanData {
  readonly by?: string
  readonly count?: { readonly only: 'success' | 'failure' | number }
  readonly respond?: RespondData
  readonly [option: string]: unknown
}

export type ListsData = Readonly<Record<string, readonly (string | number)[]>>

export interface OverrideData {
  readonly policy: string
  readonly key?: Readonly<Record<string, string | number>>
  readonly prefix?: Readonly<Record<string, string | number>>
  readonly range?: string
  readonly limits: readonly LimitData[]
  readonly until?: string
  readonly reason?: string
}
