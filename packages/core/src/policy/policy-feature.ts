import type { BanTerms, KeepTerms, Plan, RelaxedTerms, SharesTurns } from '../store/store.js'
import type { Parts } from '../util/parts.js'
import type { KeyFunction, Limit, Resolution } from './limits/limit.js'

/** A feature, as policies see it. Policies know none by name: they get a list of these. */
export interface PolicyFeature {
  /** The names of its options of a policy, which it checks in `policy`. */
  readonly policyOptions?: readonly string[]
  /** Whether these options need counts in windows, and no log, where a limit names no algorithm. @default false */
  readonly needsWindows?: (options: object) => boolean
  /**
   * Adds itself to a policy. Undefined if its options are absent.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  readonly policy?: (basis: PolicyBasis, options: object) => PolicyPart | undefined
}

/** A policy that features add themselves to. */
export interface PolicyBasis {
  readonly where: string
  readonly name: string
  readonly limits: readonly Limit[]
  /** The kinds of identities that it counts, each once. */
  readonly kinds: readonly string[]
  /** By the index of the identity. */
  readonly keys: readonly (KeyFunction<never> | undefined)[]
  /** The index of the identity of a kind among those of its requests: of the smallest groups, where it groups addresses in several ways. */
  readonly identityOf: (kind: string) => number
  /** Where a feature keeps what it needs later. */
  readonly parts: Parts
}

/** The part of a feature in the plans of a policy. */
export interface PolicyPart {
  /** Its terms of each plan. */
  readonly terms?: () => PlanTerms
  /** Counts a limit in another way, by itself. */
  readonly countAlone?: (resolution: Resolution) => Resolution
}

/** The terms of plans that features define, and that stores carry out. */
export interface PlanTerms extends Partial<Pick<Plan, 'banningPolicy'>> {
  readonly ban?: BanTerms
  readonly sharesTurns?: SharesTurns
  readonly keeps?: KeepTerms
  readonly relaxed?: RelaxedTerms
}
