import { actualUnits, type Units } from '../../policy/costs.js'
import { entriesIn } from '../../policy/given-identities.js'
import type { ReadablePlan } from '../../policy/plan.js'
import type { QuotaUnit } from '../../store/store.js'
import { joinedIds } from '../../util/charge-id.js'
import { show } from '../../util/errors.js'
import { checkActualCost, maxToSettle, refuseRelaxed } from '../../verdict/decision.js'
import type { Meter, MeterOptions } from '../../verdict/meter.js'
import { DECISION, NO_MARKS, PARTS, Verdict } from '../../verdict/verdict.js'
import { StreamMeter } from '../meters/stream-meter.js'

/**
 * The verdict on a request whose policies were decided one after the other, each with a charge of its own. It shows the last
 * decision, and changes the charges of all.
 */
class VerdictOfSeveral extends Verdict {
  readonly #parts: readonly Verdict[]

  constructor(shown: Verdict, parts: readonly Verdict[]) {
    const { allowed } = shown
    super(shown[DECISION], NO_MARKS, { allowed, remaining: 0, retryMs: 0, resetMs: 0, delayMs: 0, cell: 0 })
    Object.assign(this, shown)
    this.#parts = parts
  }

  override get id(): string | undefined {
    const ids = this.#parts.flatMap(({ id }) => id ?? [])
    return ids.length > 0 ? joinedIds(ids) : undefined
  }

  override get [PARTS](): readonly Verdict[] {
    return this.#parts
  }

  /** Each policy settles the units that its limits count. A number is at most the most that one of them was charged. */
  override async settle(actual: number | Units): Promise<boolean> {
    const where = `policy ${show(this.policy)}`
    const entries = entriesIn(actual)
    // All is checked first: a wrong amount changes nothing.
    const named = (entries ?? []).filter(([unit]) =>
      this.#parts.some(({ [DECISION]: { by } }) => by.charges.counts(unit)),
    )
    const counted = new Set([...this.#parts.flatMap(unitsIn), ...named.map(([unit]) => unit)])
    const units = entries && actualUnits({ where, units: counted }, entries)
    for (const part of units ? this.#counting([...units.keys()]) : []) refuseRelaxed(where, part[DECISION], 'settle')
    const most = this.#parts.map((part) => maxToSettle(part[DECISION]) ?? Number.POSITIVE_INFINITY)
    const requests = units ? 0 : checkActualCost(where, actual, Math.max(...most))
    const settled = this.#parts.map((part, i) => {
      if (!units) return part.settle(Math.min(requests, most[i] as number))
      const counted = unitsIn(part)
      return part.settle(Object.fromEntries([...units].filter(([unit]) => counted.includes(unit))))
    })
    return (await Promise.all(settled)).includes(true)
  }

  override meter(unit: QuotaUnit, options: MeterOptions = {}): Meter {
    const counting = this.#counting([unit])
    for (const part of counting) refuseRelaxed(`policy ${show(this.policy)}`, part[DECISION], 'meter')
    const [only, ...others] = counting
    if (others.length > 0) return new MeterOfSeveral(counting.map((part) => part.meter(unit, options)))
    return only ? only.meter(unit, options) : super.meter(unit, options)
  }

  /** The verdicts of policies that count one of these units. */
  #counting(units: readonly QuotaUnit[]): readonly Verdict[] {
    return this.#parts.filter((part) => unitsIn(part).some((unit) => units.includes(unit)))
  }
}

function unitsIn({ [DECISION]: { request } }: Verdict): readonly QuotaUnit[] {
  return (request.plan as ReadablePlan).units
}

/** A stream that several policies charge. It ends with the first that has no room. */
class MeterOfSeveral extends StreamMeter {
  readonly #meters: readonly Meter[]

  constructor(meters: readonly Meter[]) {
    super()
    this.#meters = meters
  }

  get used(): number {
    return (this.#meters[0] as Meter).used
  }

  async add(units: number): Promise<boolean> {
    const goesOn = await Promise.all(this.#meters.map((meter) => meter.add(units)))
    return !goesOn.includes(false)
  }

  async end(): Promise<void> {
    await Promise.all(this.#meters.map((meter) => meter.end()))
  }
}

/** The verdict on a request that is admitted by another decision, too. Each may be missing. */
export function withVerdict(shown: Verdict | undefined, other: Verdict | undefined): Verdict | undefined {
  return shown && other ? new VerdictOfSeveral(shown, [...shown[PARTS], ...other[PARTS]]) : (shown ?? other)
}
