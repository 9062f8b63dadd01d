import type { MaybePromise } from '../../util/when-known.js'
import type { Verdict } from '../../verdict/verdict.js'

/** Charges what is produced step by step: one charge at a time, for all units that have come since the last one. */
export class StepCharges {
  /** Units since the last charge, and in a charge under way. */
  open = 0
  charging = 0
  /** The first refusal. */
  refusal: Verdict | undefined
  readonly step: number
  readonly #max: number
  readonly #charge: (units: number) => MaybePromise<Verdict>
  readonly #charged: (verdict: Verdict | undefined) => void
  #isOver = false

  /**
   * `max`: the smallest capacity of the limits, as a larger charge would be impossible. Once there was no room, `charge` gets more, and
   * takes as much of each limit as that may hold. `charged`: called after each charge, without a verdict where it failed. An error that
   * is no outage is ignored here: it fails the next requests, which show it.
   */
  constructor(
    step: number,
    max: number,
    charge: (units: number) => MaybePromise<Verdict>,
    charged: (verdict: Verdict | undefined) => void,
  ) {
    this.step = Math.min(step, max)
    this.#max = max
    this.#charge = charge
    this.#charged = charged
  }

  /** Takes units. Charges them once they are a step. */
  add(units: number): void {
    this.open += units
    if (this.open >= this.step) this.flush()
  }

  /** Charges the rest, and whatever a charge under way leaves. */
  end(): void {
    this.#isOver = true
    this.flush()
  }

  /** Charges the units that are open. Those beyond `max` follow. */
  flush(): void {
    if (this.charging > 0) return
    const units = this.refusal ? this.open : Math.min(this.open, this.#max)
    if (units === 0) return
    this.open -= units
    this.charging = units
    const failed = () => this.#done(undefined)
    try {
      const verdict = this.#charge(units)
      if (verdict instanceof Promise) verdict.then((late) => this.#done(late), failed)
      else this.#done(verdict)
    } catch {
      failed()
    }
  }

  #done(verdict: Verdict | undefined): void {
    this.charging = 0
    if (verdict && !verdict.allowed) this.refusal ??= verdict
    this.#charged(verdict)
    if (this.open > 0 && (this.#isOver || this.open >= this.step)) this.flush()
  }
}
