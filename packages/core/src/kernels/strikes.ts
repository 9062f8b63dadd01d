import { instant } from './clock.js'

/**
 * Strikes of one identity, and the ladder of its bans. Exact: `after` strikes in any window of `withinMs` start a ban,
 * wherever the window starts. A strike exactly one window old does not count.
 */
export interface StrikeRecord {
  /** Number of remembered bans, up to the number of rungs; 0 if there is none. */
  readonly rung: number
  /** The last strike or the end of the last ban, whichever is later. `forgetAfterMs` runs from here. */
  readonly since: number
  /**
   * Instant and weight of each strike, oldest first. The sum of weights is less than `after`, as the strike that starts
   * a ban clears them.
   */
  readonly strikes: readonly number[]
}

export interface BanRules {
  /** Strikes that start a ban. */
  readonly after: number
  readonly withinMs: number
  /** Ms after the last strike and the end of the last ban until the ladder starts again at the first rung. */
  readonly forgetAfterMs: number
  /** Duration of a ban per rung, in ms. The last rung repeats. */
  readonly rungs: readonly number[]
}

/** A ban that starts. */
export interface BanStart {
  /** From 1. */
  readonly rung: number
  /** The strikes that led to the ban, including the last one. */
  readonly strikes: number
  readonly forMs: number
}

/** Numbers per entry of `strikes`. */
const ENTRY = 2

/** The record after a strike at `now`, and the ban that it starts, if any. `jitterMs` is added to such a ban. */
export function struck(
  record: StrikeRecord | undefined,
  now: number,
  weight: number,
  jitterMs: number,
  { after, withinMs, forgetAfterMs, rungs }: BanRules,
): { readonly record: StrikeRecord; readonly ban: BanStart | undefined } {
  const before = record?.strikes ?? []
  const last = before.length > 0 ? (before[before.length - ENTRY] as number) : now
  // A clock that steps back must neither revive lapsed strikes nor prolong others.
  const at = instant(last, now, withinMs)
  let rung = record?.rung ?? 0
  if (record !== undefined && at - record.since >= forgetAfterMs) rung = 0
  const strikes: number[] = []
  let count = weight
  for (let i = 0; i < before.length; i += ENTRY) {
    const since = Math.min(before[i] as number, at)
    if (at - since >= withinMs) continue
    strikes.push(since, before[i + 1] as number)
    count += before[i + 1] as number
  }
  if (count < after) {
    strikes.push(at, weight)
    return { record: { rung, since: Math.max(at, rung > 0 ? (record?.since ?? 0) : 0), strikes }, ban: undefined }
  }
  rung = Math.min(rung + 1, rungs.length)
  const forMs = (rungs[rung - 1] as number) + jitterMs
  return { record: { rung, since: now + forMs, strikes: [] }, ban: { rung, strikes: count, forMs } }
}

/** The record without its strikes; it still has the rung. Undefined if nothing is left. */
export function forgiven(record: StrikeRecord): StrikeRecord | undefined {
  return record.rung > 0 ? { ...record, strikes: [] } : undefined
}

/** The instant from which forgetting a record has no effect. */
export function endOf({ rung, since, strikes }: StrikeRecord, { withinMs, forgetAfterMs }: BanRules): number {
  const lapse = strikes.length > 0 ? (strikes[strikes.length - ENTRY] as number) + withinMs : 0
  return rung > 0 ? Math.max(since + forgetAfterMs, lapse) : lapse
}
