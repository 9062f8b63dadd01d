import type { Limit } from '../../policy/limits/limit.js'
import type { PolicyBasis, PolicyPart } from '../../policy/policy-feature.js'
import type { KeepTerms } from '../../store/store.js'
import { type Duration, durationMs } from '../../util/duration.js'
import { invalidPolicy, neverBeside } from '../../util/errors.js'
import type { PartKey } from '../../util/parts.js'
import { knownOptions } from '../../util/validate.js'

/** How long charges can be changed by their ids. */
export interface ChargesOptions {
  /**
   * How long the id of an admitted verdict is known: a duration or ms, 1 second to 366 days.
   *
   * Longer than the work takes after which a charge is settled.
   */
  readonly keep: Duration
}

/** The option of a policy. */
export interface ChargesOption {
  /**
   * Keeps admitted charges, so that any process settles, refunds, releases or renews them by the `id` of the verdict.
   *
   * See docs/charges.md.
   * @default none
   */
  readonly charges?: ChargesOptions
}

/** The terms of a policy that keeps its charges. */
export const KEPT: PartKey<KeepTerms> = { name: 'charges' }

/** @throws SluiceError `INVALID_POLICY` */
export function addKeeping(
  { where, limits, parts }: PolicyBasis,
  options: ChargesOption & { readonly consistency?: unknown },
): PolicyPart | undefined {
  if (options.charges === undefined) return undefined
  const keeps = keepTerms(where, options.charges, options, limits)
  parts.set(KEPT, keeps)
  return { terms: () => ({ keeps }) }
}

const SHORTEST_MS = 1000
const LONGEST_MS = 366 * 86_400_000

/** @throws SluiceError `INVALID_POLICY` */
export function keepTerms(
  where: string,
  charges: ChargesOptions,
  { consistency }: { readonly consistency?: unknown },
  limits: readonly Limit[],
): KeepTerms {
  if (typeof charges !== 'object' || charges === null) {
    invalidPolicy(where, 'charges', 'an object such as { keep: "1h" }', charges)
  }
  knownOptions(`${where}: charges`, charges, ['keep'])
  const forMs = durationMs(`${where}: charges`, 'keep', charges.keep)
  if (forMs < SHORTEST_MS || forMs > LONGEST_MS) {
    invalidPolicy(`${where}: charges`, 'keep', '1 second to 366 days', charges.keep)
  }
  // Both charge in one process what Redis does not know of yet.
  if (consistency !== undefined) neverBeside(where, 'charges', 'consistency', charges)
  if (limits.some(({ lease }) => lease !== undefined)) neverBeside(where, 'charges', 'lease', charges)
  return Object.freeze({ forMs })
}
