import type { Duration } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'

export interface BlockOptions {
  /** The duration: whole milliseconds or text such as `'1h'`, up to 100 years, or `Infinity`: until it is removed. */
  readonly for: Duration
  /** Shown in verdicts of blocked requests; up to 200 characters. @default '' */
  readonly reason?: string
}

/** The reason of a block or a strike. @throws SluiceError `INVALID_POLICY` */
export function checkReason(where: string, reason: unknown): string {
  if (typeof reason === 'string' && reason.length <= 200) return reason
  return invalidPolicy(where, 'reason', 'a string of up to 200 characters', reason)
}

export interface StrikeOptions {
  /** The number of strikes that it counts for: 1 to 1,000,000. @default 1 */
  readonly weight?: number
  /** Shown in the verdicts of the ban that it may start; up to 200 characters. @default '' */
  readonly reason?: string
}

export const MAX_WEIGHT = 1_000_000

/** @throws SluiceError `INVALID_POLICY` */
export function checkedStrike(policy: string, options: StrikeOptions): Required<StrikeOptions> {
  const where = `${policy}: strike`
  knownOptions(where, options, ['weight', 'reason'])
  const { weight = 1, reason = '' } = options
  wholeNumber(where, 'weight', weight, 1, MAX_WEIGHT)
  return { weight, reason: checkReason(policy, reason) }
}
