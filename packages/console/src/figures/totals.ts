import type { DecisionLabels, Totals } from './answers.js'

const ALONE = ['local', 'mirror']

/** Adds up decisions. */
export class Sum implements Totals {
  decisions = 0
  refused = 0
  reported = 0
  alone = 0

  add({ outcome, source, reported }: DecisionLabels, count: number): void {
    // Their requests are counted as admitted, too.
    if (source === 'response') return
    this.decisions += count
    if (outcome !== 'admitted' && outcome !== 'left') this[reported ? 'reported' : 'refused'] += count
    if (ALONE.includes(source)) this.alone += count
  }

  addAll({ decisions, refused, reported, alone }: Totals): void {
    this.decisions += decisions
    this.refused += refused
    this.reported += reported
    this.alone += alone
  }

  read(): Totals {
    const { decisions, refused, reported, alone } = this
    return { decisions, refused, reported, alone }
  }
}

/** A number for people: two decimals tell one decision a minute from none. */
export function rounded(number: number): number {
  return Math.round(number * 100) / 100
}
