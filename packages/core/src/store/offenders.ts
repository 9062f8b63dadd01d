/** How far back it is asked for. */
export type OffendersWindow = '10m' | '1h' | '1d'

export interface OffendersQuery {
  /** The name of a policy. */
  readonly policy: string
  /** Most to return, 1 to 1,000. @default 20 */
  readonly top?: number
  /** In the last 10 minutes, hour or day, and up to a sixth more. @default '1h' */
  readonly in?: OffendersWindow
}

/** An identity that is refused. */
export interface Offender {
  /** Such as `ip`. */
  readonly kind: string
  /** As it is counted: normalised, and hashed where it is secret or long. */
  readonly value: string
  /** How often it was refused: never too high, and too low by `error` at most. */
  readonly refusals: number
}

export interface OffendersReport {
  /** Those that were refused most, the first most of all. */
  readonly offenders: readonly Offender[]
  /** How often all were refused, those that are not listed among them. */
  readonly refusals: number
  /** By how much any count may be too low: less than 0.1 % of `refusals`. Identities that are not kept were not refused more often. */
  readonly error: number
  /** From when on refusals are counted, in ms since 1970 by the store's clock. */
  readonly since: number
}
