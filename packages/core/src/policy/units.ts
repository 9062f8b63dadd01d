import type { QuotaUnit } from '../store/store.js'
import { arePermits, BUILT_IN_UNITS, isOwnUnit } from '../store/units.js'
import { invalidPolicy } from '../util/errors.js'

/** The end of a cell's id. Equal limits of two units never share a count. Names of units have no `_`. */
export function idOfUnit(unit: QuotaUnit): string {
  return isOwnUnit(unit) ? `_${unit}` : ''
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkUnit(where: string, unit: unknown): QuotaUnit {
  const isName = typeof unit === 'string' && /^[A-Za-z0-9-]{1,32}$/.test(unit)
  if (!isName || clashing([unit, ...BUILT_IN_UNITS]) !== undefined) {
    invalidPolicy(where, 'unit', '1 to 32 letters, digits and "-" that are no other spelling of a built-in unit', unit)
  }
  if (arePermits(unit)) invalidPolicy(where, 'unit', 'another one, as concurrency counts it', unit)
  return unit
}

/** @throws SluiceError `INVALID_POLICY` for units that differ by case alone: clients may fold names */
export function unitsOf(where: string, limits: readonly { readonly unit: QuotaUnit }[]): ReadonlySet<QuotaUnit> {
  const units = new Set(limits.map(({ unit }) => unit))
  const clash = clashing([...units])
  if (clash !== undefined) invalidPolicy(where, 'unit', 'units that differ by more than case', clash)
  return units
}

/** A unit that differs from an earlier one by case alone. */
function clashing(units: readonly QuotaUnit[]): QuotaUnit | undefined {
  return units.find((unit, i) =>
    units.slice(0, i).some((other) => other !== unit && other.toLowerCase() === unit.toLowerCase()),
  )
}
