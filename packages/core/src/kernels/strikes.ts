import { instant } from './clock.js'

/**
 * Strikes of one identity, and the ladder of its bans: exact, never more than `after` strikes short of a ban in any window
 * of `withinMs`, wherever that starts. A strike exactly one window old no longer counts.
 */
export interface StrikeRecord {
  /** How many bans there were, up to the number of rungs: 0 for none that is remembered. */
  readonly rung: number
  /** The last strike or the end of the last ban, whichever is later: from here on the time runs after which the rung is forgotten. */
  readonly since: number
  /** Instant and weight of each strike, oldest first: less than `after` in all, as the one that starts a ban clears them. */
  readonly strikes: readonly number[]
}

export interface BanRules {
  /** Strikes that start a ban. */
  readonly after: number
  readonly withinMs: number
  /** How long after the last strike and the end of the last ban the next ban is of the first rung again. */
  readonly forgetAfterMs: number
  /** How long a ban of each rung lasts, in ms. The last rung repeats. */
  readonly rungs: readonly number[]
}

/** A ban that starts. */
export interface BanStart {
  /** From 1. */
  readonly rung: number
  /** The strikes that led to it, the last one included. */
  readonly strikes: number
  readonly forMs: number
}

/** Numbers per entry of `strikes`. */
const ENTRY = 2

/** The record after a strike at `now`, and the ban that this starts, if it does. `jitterMs` makes such a ban longer. */
export function struck(
  record: StrikeRecord | undefined,
  now: number,
  weight: number,
  jitterMs: number,
  { after, withinMs, forgetAfterMs, rungs }: BanRules,
): { readonly record: StrikeRecord; readonly ban: BanStart | undefined } {
  const before = record?.strikes ?? []
  const last = before.length > 0 ? (before[before.length - ENTRY] as number) : now
  // A clock that steps back must not bring lapsed strikes back, nor make others last.
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

/** The record without its strikes: bans are remembered. Undefined where nothing is left. */
export function forgiven(record: StrikeRecord): StrikeRecord | undefined {
  return record.rung > 0 ? { ...record, strikes: [] } : undefined
}

/** From when on forgetting a record cannot be noticed. */
export function endOf({ rung, since, strikes }: StrikeRecord, { withinMs, forgetAfterMs }: BanRules): number {
  const lapse = strikes.length > 0 ? (strikes[strikes.length - ENTRY] as number) + withinMs : 0
  return rung > 0 ? Math.max(since + forgetAfterMs, lapse) : lapse
}
