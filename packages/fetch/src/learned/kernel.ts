/**
 * A learned quota: what a service has told of its limits, and the requests that are in flight. Pure; lua/quota.lua is its twin.
 *
 * All numbers are whole. Instants are ms since 1970 by the clock of the store.
 */

/** A limit as a response has told it. */
export interface ToldLimit {
  readonly name: string
  /** Units per window; 0 if that is not known. */
  readonly limit: number
  readonly remaining: number
  readonly resetAfterMs: number
  /** Whether units come back one by one. */
  readonly isBucket: boolean
}

export interface KnownLimit {
  readonly name: string
  readonly limit: number
  readonly remaining: number
  /** The latest instant of its reset, and the earliest: responses take time, and may tell whole seconds. */
  readonly resetAt: number
  readonly resetFrom: number
  /** The time in which one unit of a bucket comes back, in µs; 0 for windows, and for a bucket that was told to be full. */
  readonly perUnitUs: number
  readonly toldAt: number
  readonly isBucket: boolean
}

export interface QuotaState {
  /** Whether a response has come. */
  isKnown: boolean
  /** Until when the first request is alone; 0 for none. */
  aloneUntil: number
  /** The number of the present slot of time, and the requests in flight that were taken in it, and in the one before. */
  slot: number
  newer: number
  older: number
  /** All requests so far. */
  taken: number
  limits: readonly KnownLimit[]
}

/** What a request may do now. */
export interface QuotaLook {
  /** Milliseconds until it may be sent; 0 now. */
  readonly waitMs: number
  /** Whether its response is the first, which tells the limits. */
  readonly isFirst: boolean
  /** The pause after it in µs, so that what is left lasts. */
  readonly intervalUs: number
}

/** A request that has been taken. */
export interface QuotaTaken {
  readonly slot: number
  readonly at: number
}

/** What became of a request: it was not sent, no response came, or one came. */
export const UNSENT = 0
export const FAILED = 1
export const ANSWERED = 2
export type QuotaOutcome = typeof UNSENT | typeof FAILED | typeof ANSWERED

/** A request that has no answer after one to two slots has been counted by its service: it is in flight no longer. */
const SLOT_MS = 30_000
/** How long the first request is alone, so that its response tells the limits before others follow. */
export const ALONE_MS = 1000
/** Resets in whole seconds are later than they are by as much. */
const ROUNDED_MS = 1000
/** No pause between two requests is longer: what a service asks for beyond it is a hold. */
const MAX_INTERVAL_US = 60_000_000
/** The part of a quota that is spent evenly by `pace: 'burst'`, too: a tenth. */
const EVEN_PART = 10
/** The wait where only an answer can tell more. */
const ANSWER_MS = 50

export function emptyState(): QuotaState {
  return { isKnown: false, aloneUntil: 0, slot: 0, newer: 0, older: 0, taken: 0, limits: [] }
}

/** Brings a state to an instant: requests without an answer are counted, and units of windows that are over unknown. */
export function age(state: QuotaState, now: number): void {
  const slot = Math.floor(now / SLOT_MS)
  if (slot <= state.slot) return
  const isNext = slot === state.slot + 1
  spend(state, state.older + (isNext ? 0 : state.newer))
  state.older = isNext ? state.newer : 0
  state.newer = 0
  state.slot = slot
}

/** Takes units that no response tells. */
function spend(state: QuotaState, units: number): void {
  if (units === 0) return
  state.limits = state.limits.map((limit) => ({ ...limit, remaining: Math.max(0, limit.remaining - units) }))
}

/** Units left, those in flight included. */
function leftOf({ limit, remaining, perUnitUs, toldAt, isBucket }: KnownLimit, now: number): number {
  if (!isBucket) return remaining
  const most = Math.max(limit, remaining)
  return perUnitUs === 0 ? most : Math.min(most, remaining + Math.floor((Math.max(0, now - toldAt) * 1000) / perUnitUs))
}

function isOver({ resetAt, isBucket }: KnownLimit, now: number): boolean {
  return !isBucket && resetAt <= now
}

/** Looks at a state that is aged. `percent`: the share of the units that is for this process. */
export function look(state: QuotaState, now: number, isEven: boolean, percent = 100): QuotaLook {
  const inFlight = state.newer + state.older
  let [waitMs, intervalUs, isFirst] = [0, 0, !state.isKnown]
  for (const known of state.limits) {
    if (isOver(known, now)) {
      isFirst = true
      continue
    }
    const told = Math.floor((leftOf(known, now) * percent) / 100)
    // Requests in flight may be among those that the service has counted. For the pace that is assumed, or it would be too slow.
    if (told - inFlight < 1) waitMs = Math.max(waitMs, waitFor(known, told - inFlight, now))
    else intervalUs = Math.max(intervalUs, intervalOf(known, told, now, isEven))
  }
  if (waitMs === 0 && isFirst) waitMs = Math.max(0, state.aloneUntil - now)
  return { waitMs, isFirst, intervalUs: Math.min(MAX_INTERVAL_US, intervalUs) }
}

/** Milliseconds until a unit is left: of a window at its reset. */
function waitFor({ perUnitUs, resetAt, isBucket }: KnownLimit, left: number, now: number): number {
  if (!isBucket) return resetAt - now
  return perUnitUs === 0 ? ANSWER_MS : Math.ceil(((1 - left) * perUnitUs) / 1000)
}

function intervalOf({ limit, perUnitUs, resetAt, isBucket }: KnownLimit, left: number, now: number, isEven: boolean) {
  if (!isEven && left * EVEN_PART > limit) return 0
  // A bucket of which little is left is filled faster than it is spent.
  if (isBucket) return Math.floor((perUnitUs * limit) / Math.max(1, limit + left))
  return Math.floor(((resetAt - now) * 1000) / left)
}

/** Takes a unit for a request that has looked, and may be sent. */
export function take(state: QuotaState, now: number, isFirst: boolean): QuotaTaken {
  if (isFirst) state.aloneUntil = now + ALONE_MS
  state.newer++
  state.taken++
  return { slot: state.slot, at: now }
}

/** Takes in what became of a request, in a state that is aged. */
export function told(
  state: QuotaState,
  now: number,
  taken: QuotaTaken,
  outcome: QuotaOutcome,
  limits: readonly ToldLimit[],
): void {
  const isInFlight = taken.slot >= state.slot - 1
  if (taken.slot === state.slot) state.newer = Math.max(0, state.newer - 1)
  else if (isInFlight) state.older = Math.max(0, state.older - 1)
  state.aloneUntil = 0
  if (outcome === ANSWERED) state.isKnown = true
  if (limits.length === 0) {
    if (outcome !== UNSENT && isInFlight) spend(state, 1)
    if (outcome === ANSWERED) state.limits = state.limits.filter((limit) => !isOver(limit, now))
    return
  }
  state.limits = limits.map((limit) => known(limit, state, taken.at, now))
}

function known(limit: ToldLimit, state: QuotaState, takenAt: number, now: number): KnownLimit {
  const { name, remaining, resetAfterMs, isBucket } = limit
  const perUnitUs =
    isBucket && limit.limit > remaining ? Math.ceil((resetAfterMs * 1000) / (limit.limit - remaining)) : 0
  const told: KnownLimit = {
    name,
    limit: limit.limit,
    remaining,
    resetAt: now + resetAfterMs,
    resetFrom: takenAt + Math.max(0, resetAfterMs - ROUNDED_MS),
    perUnitUs,
    toldAt: now,
    isBucket,
  }
  const before = state.limits.find((each) => each.name === name)
  // Responses overtake each other, also those of a window by those of the next.
  if (!before || before.toldAt < takenAt || before.isBucket !== isBucket) return told
  if (!isBucket && told.resetAt < before.resetFrom) return before
  if (!isBucket && told.resetFrom > before.resetAt) return told
  // Of requests that were in flight together, the one that tells less was counted later.
  return {
    ...told,
    remaining: Math.min(leftOf(before, now), remaining),
    resetAt: Math.max(before.resetAt, told.resetAt),
    resetFrom: Math.max(before.resetFrom, told.resetFrom),
  }
}
