import { invalidPolicy, wrongPolicy } from './errors.js'
import { optionalFunction } from './validate.js'

const DAY_MS = 86_400_000

/**
 * The option `clock` of a store, by its first reading: states are whole ms, and fractions would be rounded in some places only. Later
 * ones are not checked, as timers read it, too, and an error there would end the process.
 *
 * @throws SluiceError `INVALID_POLICY` for a reading that is no whole number, or that is in seconds
 */
export function givenClock(where: string, clock: (() => number) | undefined): (() => number) | undefined {
  optionalFunction(where, 'clock', clock)
  if (clock === undefined) return undefined
  const now = clock()
  if (!Number.isSafeInteger(now)) {
    const remedy = Number.isFinite(now) ? ' (Math.floor makes them of fractions)' : ''
    invalidPolicy(where, 'clock', `a function that returns whole milliseconds${remedy}`, now)
  }
  const real = Date.now()
  // Where a test has set both clocks near 0, they agree in milliseconds, too: that is no mistake.
  if (Math.abs(1000 * now - real) < DAY_MS && Math.abs(now - real) > DAY_MS) {
    wrongPolicy(`${where}: clock: expected milliseconds, got seconds: ${now}`)
  }
  return clock
}
