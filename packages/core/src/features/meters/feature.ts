import type { ActualUnits } from '../../limiter/charge-changes.js'
import type { Engine, LimiterFeature } from '../../limiter/engine.js'
import { activeCounter } from '../../limiter/watching.js'
import type { ReadablePlan } from '../../policy/plan.js'
import { CHARGE, CONSUME, type QuotaUnit } from '../../store/store.js'
import { wrongPolicy } from '../../util/errors.js'
import { type Decision, isHeld, REFUNDED, refuseRelaxed } from '../../verdict/decision.js'
import type { Meter, MeterOptions } from '../../verdict/meter.js'
import { served } from '../../verdict/verdict.js'
import { checkedMeter, idleMeter, type PerLimit, UnitMeter } from './request-meter.js'

/** Charges of units while they are produced: `verdict.meter`. */
export const meters: LimiterFeature = {
  engine: (engine) => ({
    meter: (decision, unit, options, goesOn) => openMeter(engine, decision, unit, options, goesOn),
  }),
}

/** See `ChargeLedger.meter`. */
function openMeter(
  engine: Engine<never>,
  decision: Decision,
  unit: QuotaUnit,
  options: MeterOptions,
  goesOn: boolean | 'beyond',
): Meter {
  const { charges: ledger } = engine
  const { where } = engine.policy
  const { step, isCut } = checkedMeter(ledger.counting([unit]), unit, options)
  refuseRelaxed(where, decision, 'meter')
  const { plan, costs } = decision.request
  const { units, cells } = plan as ReadablePlan
  const counting = cells.flatMap(({ limits }, c) => {
    if (units[c] !== unit) return []
    const estimate = isHeld(decision) ? (costs[c] as number) : 0
    const capacities = limits.map(({ capacity }) => capacity)
    const reserved = decision.by.reserved?.[c] ?? 0
    const smallest = Math.min(...capacities) - reserved
    return [{ c, estimate, smallest, largest: reserved > 0 ? smallest : Math.max(...capacities) }]
  })
  // Units per cell: none for limits of other units.
  const perCell = (amounts: PerLimit) => {
    const all = units.map(() => 0)
    for (const [i, { c }] of counting.entries()) all[c] = amounts[i] as number
    return all
  }
  const isSettled = decision.settled === REFUNDED || decision.settled?.has(unit)
  if (!goesOn || isSettled || counting.length === 0 || decision.by.store === undefined)
    return idleMeter(decision, goesOn !== false && !isSettled)
  const open = ledger.openFor(decision)
  if (open.has(unit)) wrongPolicy(`${where}: meter: expected one for each unit of a verdict`)
  const meter = new UnitMeter(
    decision,
    {
      where: where,
      isKept: isHeld(decision) && decision.result.id !== undefined,
      charge: (more, isRest) => engine.chargeMore(decision, perCell(more), isRest ? CHARGE : CONSUME),
      exhausted: (refusal, isCut) => engine.conclude(isCut ? refusal : served(refusal), isCut),
      charged: ({ request }) => activeCounter()?.changedCharge(request),
      settleOwn: (back) => ledger.settleOwn(decision, lessOf(unit, perCell(back))),
      refund: (step, back) => ledger.reduce(step, lessOf(unit, perCell(back))),
      debit: (more) => ledger.debit(decision, perCell(more)),
      closed: () => {
        if (decision.settled !== REFUNDED) decision.settled = new Set([...(decision.settled ?? []), unit])
      },
    },
    counting,
    step,
    isCut && goesOn !== 'beyond',
  )
  open.set(unit, meter)
  return meter
}

/** The actual units of a charge of which so many of one unit are refunded, per cell. */
function lessOf(unit: QuotaUnit, back: readonly number[]): ActualUnits {
  return (each, charged, c) => (each === unit ? charged - (back[c] as number) : undefined)
}
