import type { IdentityByKind, Limit, PolicyOptions } from '@sluice/core'
import type { PolicyOverrides } from '../overrides.js'
import type { ShownDocument } from '../shown-document.js'
import type { PolicyVersions } from '../versions.js'
import type { GivenIdentity } from './given.js'

/** The request for which policies are shown. */
export interface ShownRequest {
  /** Other identities of the same request. */
  readonly with?: readonly GivenIdentity[]
  /** Policies for other paths are left out. @default policies of every path */
  readonly path?: string
  /** Policies for other methods are left out. @default 'GET', with a path */
  readonly method?: string
  /** @default every tier */
  readonly tier?: string
}

/** The limits of a policy, or of one of its tiers, for one identity. */
export interface LimitsForIdentity {
  readonly policy: string
  readonly tier: string | undefined
  /** The override that decides: its index in the document, or its table, and its end in ms since 1970. */
  readonly override: { readonly index: number | string; readonly until: number | undefined } | undefined
  /** Those that count the identity, with a key that yields it. */
  readonly limits: readonly Limit<unknown>[]
  readonly consistency: PolicyOptions<unknown>['consistency']
}

/** Policies of a document, as far as the console uses them: `Policies` of `@sluice/policies`. */
export interface PeekablePolicies {
  readonly version: string
  readonly error: Error | undefined
  /** Absent in versions without overrides beside a document. */
  readonly overrides?: PolicyOverrides
  /** Undefined for documents in files and code, and in versions without it. */
  readonly versions?: PolicyVersions | undefined
  readonly byName: ReadonlyMap<
    string,
    { readonly options: { readonly limits?: readonly Limit[]; readonly allow?: unknown; readonly deny?: unknown } }
  >
  /** Absent in versions without it. */
  shown?(): ShownDocument
  forIdentity(identity: IdentityByKind, request?: ShownRequest): Promise<readonly LimitsForIdentity[]>
}
