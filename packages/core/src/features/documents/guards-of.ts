import type { DecidingParts } from '../../http/guard/peek.js'
import type { PolicyChoice } from '../../policy/policy.js'
import type { Store } from '../../store/store.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import type { MatchedPolicies, PolicySource } from './policy-source.js'

/** A guard that decides by policies that are data. */
export interface GuardOfPolicies {
  readonly name: string
  readonly store: Store
  readonly source: PolicySource<never>
  /** What decides on requests that match. */
  readonly of: (matched: MatchedPolicies<never>) => {
    readonly parts: DecidingParts
    readonly choice: PolicyChoice<never> | undefined
  }
}

/** A policy, or one of its tiers, for a request that is known in part. */
export interface KnownPolicy {
  readonly policy: string
  readonly tier: string | undefined
  /** The override that decides: its index in the document, or its table, and its end in ms since 1970. */
  readonly override: { readonly index: number | string; readonly until: number | undefined } | undefined
  readonly matched: MatchedPolicies<never>
  /** The kinds of identities without which it is not known which limits the request has. */
  readonly needs: readonly string[]
  /** What may keep the policy from applying, such as `host`. */
  readonly unless: readonly string[]
}

/** Policies that can be asked about a request that is known in part, as those of `@sluice/policies`. */
export interface AskedPolicies {
  /** Resolves to one `KnownPolicy` for each policy and tier. */
  forKnown(known: never): unknown
}

const bySource = new WeakMap<object, GuardOfPolicies[]>()
const byLimiter = new WeakMap<object, GuardOfPolicies>()

export function noteGuardOf(limiter: object, guard: GuardOfPolicies): void {
  byLimiter.set(limiter, guard)
  getOrInsert(bySource, guard.source, () => []).push(guard)
}

/** The guards of this process that decide by policies. */
export function guardsOf(source: object): readonly GuardOfPolicies[] {
  return bySource.get(source) ?? []
}

/** Undefined for a limiter that has no policies as data. */
export function guardOfLimiter(limiter: object): GuardOfPolicies | undefined {
  return byLimiter.get(limiter)
}
