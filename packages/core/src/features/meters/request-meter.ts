import { actualUnits, type Counting, checkCost, takesNothing } from '../../policy/costs.js'
import type { QuotaUnit } from '../../store/store.js'
import { knownOptions, oneOf, wholeNumber } from '../../util/validate.js'
import type { MaybePromise } from '../../util/when-known.js'
import { type Decision, isCharged, isHeld } from '../../verdict/decision.js'
import type { MeterOptions } from '../../verdict/meter.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { StepCharges } from './step-charges.js'
import { StreamMeter } from './stream-meter.js'

/** Units for each limit that counts the unit of a meter. */
export type PerLimit = readonly number[]

/** The parts of a meter beside its numbers. */
export interface MeterParts {
  readonly where: string
  /** Whether other processes may settle the request's own charge, so that the end of the meter has to take it. */
  readonly isKept: boolean
  /** Charges units if all limits have room; those that a stream has left at its end, `isRest`, as far as there is room. */
  readonly charge: (units: PerLimit, isRest: boolean) => MaybePromise<Verdict>
  /** Called with each step that is charged. */
  readonly charged: (step: Decision) => void
  /** Refunds units of the request's own charge, which settles it. `done before` where another process has settled it. */
  readonly settleOwn: (units: PerLimit) => Promise<boolean | 'done before'>
  /** Refunds units of a step. */
  readonly refund: (step: Decision, units: PerLimit) => Promise<boolean>
  /** Charges units whatever room there is. */
  readonly debit: (units: PerLimit) => Promise<boolean>
  /** Called with the first refusal. `isCut`: whether the stream ends there. */
  readonly exhausted: (refusal: Verdict, isCut: boolean) => void
  /** Called once, before the charge is corrected. */
  readonly closed: () => void
}

/** @throws SluiceError `INVALID_COST` for a unit that cannot be metered, `INVALID_POLICY` for wrong options */
export function checkedMeter(
  policy: Counting,
  unit: QuotaUnit,
  options: MeterOptions,
): { step: number; isCut: boolean } {
  const where = `${policy.where}: meter`
  actualUnits(policy, [[unit, 0]], 'meter')
  knownOptions(where, options, ['step', 'onExhausted'])
  const { step = 64, onExhausted = 'cut' } = options
  return {
    step: wholeNumber(where, 'step', step, 1),
    isCut: oneOf(where, 'onExhausted', onExhausted, ['cut', 'finish']) === 'cut',
  }
}

const CHARGES_NOTHING: Omit<MeterParts, 'charge'> = {
  where: 'meter',
  isKept: false,
  charged: () => {},
  settleOwn: async () => false,
  refund: async () => false,
  debit: async () => false,
  exhausted: () => {},
  closed: () => {},
}

/** A meter that charges nothing: its request is refused, or no limit decided on it. */
export function idleMeter(decision: Decision, goesOn: boolean): UnitMeter {
  const charge = () => {
    throw new Error('an estimate without end is never used up')
  }
  const limits = [{ estimate: Number.POSITIVE_INFINITY, smallest: 1, largest: 1 }]
  const meter = new UnitMeter(decision, { ...CHARGES_NOTHING, charge }, limits, 1, false)
  if (!goesOn) void meter.close(0)
  return meter
}

/** A limit that counts the unit of a meter, or several that share a log. */
interface MeteredLimit {
  /** Units that the request was charged. */
  readonly estimate: number
  /** The smallest and the largest capacity. */
  readonly smallest: number
  readonly largest: number
}

/** A charged step, for refunds. */
interface Step {
  readonly decision: Decision
  readonly units: PerLimit
}

/**
 * Each limit may have been charged another estimate. A unit of the stream is charged to those limits whose estimate it exceeds, so
 * that steps begin where the smallest estimate ends.
 */
export class UnitMeter extends StreamMeter {
  used = 0
  readonly #decision: Decision
  readonly #by: MeterParts
  readonly #limits: readonly MeteredLimit[]
  /** The smallest estimate. */
  readonly #first: number
  readonly #charges: StepCharges
  readonly #isCut: boolean
  /** The steps that limits have counted: the newest last. */
  readonly #steps: Step[] = []
  /** The units of a charge under way, and the unit of the stream that it ends with. */
  #charging: { readonly units: PerLimit; readonly to: number } = { units: [], to: 0 }
  /** The estimate of each limit, and the units of all steps but those without room. During an outage, limits may not have counted a step. */
  #totals: PerLimit
  /**
   * The unit of the stream that the last charged step ended with. Units of refused steps before it stay uncharged: their window had
   * no room for them, and may be over.
   */
  #end: number
  #isExhausted = false
  #isEnding = false
  #closing: Promise<boolean> | undefined
  #wake: (() => void)[] = []

  constructor(decision: Decision, by: MeterParts, limits: readonly MeteredLimit[], step: number, isCut: boolean) {
    super()
    this.#decision = decision
    this.#by = by
    this.#limits = limits
    this.#totals = limits.map(({ estimate }) => estimate)
    this.#first = Math.min(...this.#totals)
    this.#end = this.#first
    this.#isCut = isCut
    this.#charges = new StepCharges(
      step,
      Math.max(1, Math.min(...limits.map(({ smallest }) => smallest))),
      (units) => this.#charge(units),
      (verdict) => this.#charged(verdict),
    )
  }

  async add(units: number): Promise<boolean> {
    checkCost(this.#by.where, 'meter', units)
    if (this.#closing) return false
    const charges = this.#charges
    const from = Math.max(this.#first, this.used)
    this.used += units
    if (this.used > from) charges.add(this.used - from)
    while (charges.charging > 0 && charges.open >= charges.step && !this.#closing) await this.#nextCharge()
    return !this.#closing && !(this.#isCut && charges.refusal)
  }

  async end(): Promise<void> {
    await this.close()
  }

  /**
   * Ends the meter, once: with the units added so far, or with another total. Resolves to whether that refunded or charged
   * anything.
   */
  close(total?: number): Promise<boolean> {
    if (this.#closing) return this.#closing.then(() => false)
    this.#closing = this.#close(total)
    return this.#closing
  }

  async #close(total: number | undefined): Promise<boolean> {
    const charges = this.#charges
    const wasHeld = isHeld(this.#decision)
    this.#isEnding = true
    this.#by.closed()
    if (total !== undefined) charges.open = 0
    while (charges.charging > 0) await this.#nextCharge()
    const actual = total ?? this.used
    const more = this.#totals.map((charged) => Math.max(0, actual - charged))
    const ofOwn = this.#limits.map(({ estimate }) => Math.max(0, estimate - actual))
    const refunds = this.#refundsOf(actual)
    const settled = wasHeld && (!takesNothing(ofOwn) || this.#by.isKept) ? this.#by.settleOwn(ofOwn) : undefined
    // The first settlement counts.
    if (this.#by.isKept && (await settled) === 'done before') return false
    const changes = [settled, ...refunds.map(({ decision, units }) => this.#by.refund(decision, units))]
    if (total !== undefined) changes.push(this.#by.debit(more))
    else if (this.used > this.#end) {
      changes.push(this.#by.debit(this.#beyondSmallest()))
      charges.open = this.used - this.#end
      charges.end()
    }
    const isChanged = (await Promise.all(changes)).includes(true)
    while (charges.charging > 0) await this.#nextCharge()
    return isChanged
  }

  /**
   * The parts of counted steps, of the newest first, by which these and the estimates exceed a total. Steps that no limit counted, or
   * that failed, are the first to go: there is nothing to refund.
   */
  #refundsOf(total: number): Step[] {
    let left: PerLimit = this.#limits.map(({ estimate }, i) =>
      Math.max(0, this.#steps.reduce((sum, { units }) => sum + (units[i] as number), estimate) - total),
    )
    return this.#steps.toReversed().map((step) => {
      const units = step.units.map((charged, i) => Math.min(charged, left[i] as number))
      left = left.map((each, i) => each - (units[i] as number))
      return { decision: step.decision, units }
    })
  }

  /**
   * The rest of the stream for limits that share a log, beyond the smallest of them: charges of that size are impossible, and the others
   * have to count them.
   */
  #beyondSmallest(): PerLimit {
    return this.#limits.map(({ estimate, smallest, largest }) => {
      const rest = Math.max(0, this.used - Math.max(this.#end, estimate))
      return Math.min(largest, rest) - Math.min(smallest, rest)
    })
  }

  #charge(units: number): MaybePromise<Verdict> {
    const to = Math.max(this.#first, this.used) - this.#charges.open
    // A limit of 0 refuses steps, and takes nothing of the rest.
    const ofLimit = ({ estimate, smallest }: MeteredLimit) =>
      Math.min(this.#isEnding ? smallest : Math.max(1, smallest), Math.max(0, to - Math.max(to - units, estimate)))
    this.#charging = { units: this.#limits.map(ofLimit), to }
    return this.#by.charge(this.#charging.units, this.#isEnding)
  }

  #charged(verdict: Verdict | undefined): void {
    const { units, to } = this.#charging
    // A charge that failed may have happened, and is not made again.
    if (!verdict || verdict.allowed) {
      this.#totals = this.#totals.map((charged, i) => charged + (units[i] as number))
      this.#end = to
    }
    if (verdict?.allowed) {
      const decision = verdict[DECISION]
      if (isCharged(decision)) {
        this.#steps.push({ decision, units })
        this.#by.charged(decision)
      }
    } else if (verdict && !this.#isExhausted) {
      this.#isExhausted = true
      this.#by.exhausted(verdict, this.#isCut)
    }
    for (const wake of this.#wake.splice(0)) wake()
  }

  #nextCharge(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve))
  }
}
