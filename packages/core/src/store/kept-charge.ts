/** Terms on which admitted charges are kept, so that any process changes them by their ids. */
export interface KeepTerms {
  /** How long the id of a charge is known, in ms. */
  readonly forMs: number
}

/** A charge to keep, or one that is kept and changed. */
export interface Keep extends KeepTerms {
  /** Its id. A store makes one for a decision without it. */
  readonly id?: string
  /**
   * For changes: the cells whose charge is taken from the record. A cell is changed if it was not taken before, and taken
   * then, except by `RENEW`. Absent for all cells.
   */
  readonly takes?: readonly boolean[]
}

/**
 * The outcome of a change of a kept charge: `done` now, in whole or as far as it was missing; `done before`; or `unknown`, as the
 * id is over, was reset, or never was one of this store and policy.
 */
export type ChargeOutcome = 'done' | 'done before' | 'unknown'

/** The outcome for a charge, of the outcomes for its parts. Where nothing had to be changed, it is done. */
export function outcomeOf(parts: readonly (ChargeOutcome | undefined)[]): ChargeOutcome {
  if (parts.length === 0 || parts.includes('done')) return 'done'
  return parts.includes('done before') ? 'done before' : 'unknown'
}
