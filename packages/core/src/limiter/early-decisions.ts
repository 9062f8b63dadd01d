import type { Given } from '../policy/kinds.js'
import type { KnownRequest } from '../policy/known-request.js'
import type { PolicyChoice } from '../policy/policy.js'
import type { HttpContext } from '../request/context.js'
import type { Store } from '../store/store.js'
import type { LimiterWarning, Warnings } from '../util/warnings.js'
import type { Verdict } from '../verdict/verdict.js'

/** What decides before the limits on a request that is known in part. */
export interface KnownMatch {
  /** Undefined if the limits decide, as far as is known. */
  readonly verdict: Verdict | undefined
  /** The kinds of identities that would have to be known besides, by what they may do. */
  readonly missing: { readonly allow: readonly string[]; readonly deny: readonly string[] }
}

/** Decides before the limits, as lists do. */
export interface EarlyDecisions<Subject> {
  /** Resolves once decisions can be made. Undefined if they can. */
  readonly pending: Promise<unknown> | undefined
  /** The names of what refuses, for our own packages. */
  readonly denying: readonly string[]
  /** The names of what admits, for our own packages. */
  readonly allowing: readonly string[]
  /** Undefined if the limits decide. */
  match(subject: Subject, context: HttpContext<Subject>): Verdict | undefined
  /** The same for an identity that is given by hand: functions of requests are not called. */
  matchGiven(given: Given): Verdict | undefined
  /** The same for a request that is known in part, and the kinds of identities that would have to be known besides. */
  matchKnown(known: KnownRequest): KnownMatch
  /** Warns about a block of an identity that is admitted all the same. */
  adviseOnBlock(given: Given): void
}

/** The limiter that decisions are for. */
export interface EarlyBasis<Subject> {
  readonly policy: PolicyChoice<Subject>
  readonly store: Store
  readonly warnings: Warnings<LimiterWarning>
  /** Whether the arguments of the limiter are keys as text, and no objects. */
  readonly areTexts: boolean
}
