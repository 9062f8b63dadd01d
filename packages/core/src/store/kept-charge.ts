/** Terms on which admitted charges are kept, so that any process changes them by their ids. */
export interface KeepTerms {
  /** How long the id of a charge is known, in ms. */
  readonly forMs: number
}

/** A charge to keep, or one that is kept and changed. */
export interface Keep extends KeepTerms {
  /** Its id. A store makes one for a decision without it. */
  readonly id: string | undefined
  /**
   * For changes: the cells whose charge is taken from the record. A cell is changed if it was not taken before, and taken
   * then, except by `RENEW`. Absent for all cells. A change may take none: its outcome then says whether the id is known.
   * `RENEW` makes a known id valid for another `forMs`, whichever cells it takes.
   */
  readonly takes: readonly boolean[] | undefined
}

/** The fields of a charge to keep whose id the store makes. */
export const NEW_CHARGE = { id: undefined, takes: undefined } as const

/**
 * The outcome of a change of a kept charge: `done` now, in whole or as far as it was missing; `done before`, or nothing to do; or
 * `unknown`, as the id is over, was reset, or never was one of this store and policy.
 */
export type ChargeOutcome = 'done' | 'done before' | 'unknown'

/** Whether a change takes no cell of its part of a charge. */
export function takesNone({ keep }: { readonly keep?: Keep | undefined }): boolean {
  return keep?.takes?.includes(true) === false
}

/** A change of a part of a charge, and its outcome. */
export interface PartOutcome {
  readonly takesNone: boolean
  readonly outcome: ChargeOutcome | undefined
}

/** The outcome for a charge, of the outcomes for its parts: those of which cells are taken, if there are any. */
export function outcomeOf(parts: readonly PartOutcome[]): ChargeOutcome {
  const taken = parts.filter((part) => !part.takesNone)
  const outcomes = (taken.length > 0 ? taken : parts).map(({ outcome }) => outcome)
  if (outcomes.includes('done')) return 'done'
  return outcomes.includes('done before') ? 'done before' : 'unknown'
}
