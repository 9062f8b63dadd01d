/** The time span of a report. */
export type OffendersWindow = '10m' | '1h' | '1d'

export interface OffendersQuery {
  /** The name of a policy. */
  readonly policy: string
  /** Maximum number of offenders, 1 to 1,000. @default 20 */
  readonly top?: number
  /** The last 10 minutes, hour or day, plus up to a sixth of that. @default '1h' */
  readonly in?: OffendersWindow
}

/** An identity that is refused. */
export interface Offender {
  /** Such as `ip`. */
  readonly kind: string
  /** The value as it is counted: normalised, and hashed if it is secret or long. */
  readonly value: string
  /** The number of refusals. Never too high, and at most `error` too low. */
  readonly refusals: number
}

export interface OffendersReport {
  /** The identities with the most refusals, in descending order. */
  readonly offenders: readonly Offender[]
  /** All refusals, including those of identities that are not listed. */
  readonly refusals: number
  /**
   * The most by which a count may be too low: less than 0.1 % of `refusals`. Identities without a count had no more
   * refusals than this.
   */
  readonly error: number
  /** The start of the counted span, in ms since 1970 by the store's clock. */
  readonly since: number
}

/** The symbol of the part of a store that counts refusals by identity: `store[OFFENDERS]`. */
export const OFFENDERS: unique symbol = Symbol.for('@sluice/core: offenders')

/** The identities that policies refuse most often. */
export interface StoreOffenders {
  /**
   * Called for every finally refused request, once for each policy that refuses it, with the identities that had no
   * room or are blocked. For a policy document, the policies are its own, not the limiter that decides on them.
   * Undefined if refusals are not counted.
   */
  readonly note: ((policy: string, identities: readonly string[]) => void) | undefined
  /**
   * The identities that a policy refused most often.
   *
   * @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE`
   */
  report(query: OffendersQuery): Promise<OffendersReport>
}
