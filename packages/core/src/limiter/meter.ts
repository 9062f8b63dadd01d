import { Transform } from 'node:stream'
import { actualUnits, type Counting, checkCost } from '../policy/costs.js'
import type { QuotaUnit } from '../store/store.js'
import { knownOptions, oneOf, wholeNumber } from '../util/validate.js'
import type { MaybePromise } from '../util/when-known.js'
import { type Decision, isCharged, isHeld } from '../verdict/decision.js'
import type { Meter, MeterOptions } from '../verdict/meter.js'
import { DECISION, type Verdict } from '../verdict/verdict.js'
import { StepCharges } from './step-charges.js'

/** The parts of a meter beside its numbers. */
export interface MeterParts {
  readonly where: string
  /** Whether other processes may settle the request's own charge, so that the end of the meter has to take it. */
  readonly isKept: boolean
  /** Charges units if all limits have room; those that a stream has left at its end, `isRest`, as far as there is room. */
  readonly charge: (units: number, isRest: boolean) => MaybePromise<Verdict>
  /** Called with each step that is charged. */
  readonly charged: (step: Decision) => void
  /** Refunds units of the request's own charge, which settles it. `done before` where another process has settled it. */
  readonly settleOwn: (units: number) => Promise<boolean | 'done before'>
  /** Refunds units of a step. */
  readonly refund: (step: Decision, units: number) => Promise<boolean>
  /** Charges units whatever room there is. */
  readonly debit: (units: number) => Promise<boolean>
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
  const meter = new UnitMeter(decision, { ...CHARGES_NOTHING, charge }, Number.POSITIVE_INFINITY, 1, 1, false)
  if (!goesOn) void meter.close(0)
  return meter
}

export class UnitMeter implements Meter {
  used = 0
  readonly #decision: Decision
  readonly #by: MeterParts
  /** Units that the request was charged. */
  readonly #estimate: number
  readonly #charges: StepCharges
  readonly #isCut: boolean
  /** The steps that limits have counted, for refunds: the newest last. */
  readonly #steps: { readonly decision: Decision; units: number }[] = []
  /** Units of all steps but those without room. During an outage, limits may not have counted a step. */
  #stepped = 0
  /** Units of refused steps from before the last charged one: their window had no room for them, and may be over. */
  #forgiven = 0
  #isExhausted = false
  #isEnding = false
  #closing: Promise<boolean> | undefined
  #wake: (() => void)[] = []

  constructor(decision: Decision, by: MeterParts, estimate: number, step: number, max: number, isCut: boolean) {
    this.#decision = decision
    this.#by = by
    this.#estimate = estimate
    this.#isCut = isCut
    this.#charges = new StepCharges(
      step,
      max,
      (units) => by.charge(units, this.#isEnding),
      (units, verdict) => this.#charged(units, verdict),
    )
  }

  async add(units: number): Promise<boolean> {
    checkCost(this.#by.where, 'meter', units)
    if (this.#closing) return false
    const charges = this.#charges
    const from = Math.max(this.#estimate, this.used)
    this.used += units
    if (this.used > from) charges.add(this.used - from)
    while (charges.charging > 0 && charges.open >= charges.step && !this.#closing) await this.#nextCharge()
    return !this.#closing && !(this.#isCut && charges.refusal)
  }

  stream<Chunk>(count: (chunk: Chunk) => number) {
    const end = () => this.end()
    return new TransformStream<Chunk, Chunk>({
      transform: async (chunk, controller) => {
        const goesOn = await this.add(count(chunk))
        controller.enqueue(chunk)
        if (goesOn) return
        controller.terminate()
        await this.end()
      },
      flush: end,
    })
  }

  nodeStream(count: (chunk: never) => number): Transform {
    const meter = this
    let isOver = false
    return new Transform({
      objectMode: true,
      transform: async function (chunk, _encoding, done) {
        // Chunks that come after the end of the units.
        if (isOver) return done()
        try {
          isOver = !(await meter.add(count(chunk as never)))
          this.push(chunk)
          if (isOver) this.push(null)
          done()
        } catch (error) {
          done(error as Error)
        }
      },
      flush: (done) => void meter.end().then(() => done(), done),
      destroy: (error, done) => void meter.end().then(() => done(error), done),
    })
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
    const more = (total ?? this.used) - this.#estimate - this.#stepped
    const ofCharged = this.#steps.reduce((sum, { units }) => sum + units, 0)
    // Steps that no limit counted, or that failed, are the first to go: there is nothing to refund.
    const less = Math.max(0, ofCharged - this.#stepped - more)
    const ofSteps = Math.min(less, ofCharged)
    const ofOwn = Math.min(less - ofSteps, this.#estimate)
    const own = wasHeld && (ofOwn > 0 || this.#by.isKept) ? this.#by.settleOwn(ofOwn) : undefined
    // The first settlement counts.
    if (this.#by.isKept && (await own) === 'done before') return false
    if (more < 0) return (await Promise.all([own, ...this.#refundSteps(ofSteps)])).includes(true)
    if (more === 0) return false
    if (total !== undefined) return this.#by.debit(more)
    charges.open = more - this.#forgiven
    charges.end()
    while (charges.charging > 0) await this.#nextCharge()
    return false
  }

  /** Refunds units, of the newest steps first. */
  #refundSteps(units: number): Promise<boolean>[] {
    const refunds: Promise<boolean>[] = []
    let left = units
    for (let step = this.#steps.pop(); step && left > 0; step = this.#steps.pop()) {
      const part = Math.min(left, step.units)
      left -= part
      refunds.push(this.#by.refund(step.decision, part))
    }
    return refunds
  }

  #charged(units: number, verdict: Verdict | undefined): void {
    // A charge that failed may have happened, and is not made again.
    if (!verdict || verdict.allowed) this.#stepped += units
    if (verdict?.allowed) {
      const decision = verdict[DECISION]
      const { open, charging } = this.#charges
      this.#forgiven = Math.max(this.#estimate, this.used) - this.#estimate - this.#stepped - open - charging
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
