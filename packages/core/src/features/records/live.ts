import { hostname } from 'node:os'
import { OTHER } from '../../metrics/policy-counts.js'
import { neededOf, SHARES } from '../../metrics/policy-metrics.js'
import type { Snapshot } from '../../metrics/snapshot.js'
import { CONSOLE_LIMITER } from './counts.js'
import { SummedRows } from './summed-rows.js'

/** The version of the form below. One that adds a field stays the same; another number is not read. */
const FORM = 1
/** Rows of each kind: all policies and stores that a process counts. Further limits are one row. */
const MAX_ROWS = 128
/** As many limits of a policy, or twice as many policies, are counted by their names. */
const MANY_ROWS = 50
const MAX_COUNTS = 512
/** Limits of other services, those told last. Services choose their names, which may take six times as many characters here. */
const MAX_QUOTAS = 64
/** Characters of such a name. */
const MAX_NAME = 64
/** Characters of the text of one process. */
const MAX_TEXT = 131_072

/** The live figures of one process. */
export interface LiveFigures {
  readonly host: string
  readonly pid: number
  /** Ms since 1970, by its own clock. */
  readonly startedAt: number
  /** Whether it records its refusals for consoles. Absent in earlier versions. */
  readonly records?: 0 | 1
  /** The time in ms in which the second number of a count came. */
  readonly overMs: number
  /** Each by its name: since the start, and of late. */
  readonly counts: readonly (readonly [name: string, count: number, more: number])[]
  readonly gauges: readonly (readonly [policy: string, waiting: number, permits: number])[]
  /** By `USED_BOUNDS`, and one more. Earlier versions have no capacity, which is 0 as in `UseCounts`. A policy may have a tier after a point. Limits beyond the bound are those of the policy `other`. */
  readonly used: readonly (readonly [
    policy: string,
    limit: string,
    counts: readonly number[],
    capacity?: number,
    refusedElsewhere?: number,
  ])[]
  readonly stores: readonly (readonly [store: string, isAvailable: 0 | 1, since: number, pending: number])[]
  /** Policies of calls to other services, and for how many ms these want no requests. Absent in earlier versions, as are quotas. */
  readonly holds?: readonly (readonly [policy: string, forMs: number])[]
  /** As services told them, `null` where they did not. Resets that are over are negative. */
  readonly quotas?: readonly (readonly [
    policy: string,
    limit: string,
    unit: string,
    units: number | null,
    remaining: number | null,
    resetAfterMs: number | null,
    toldBeforeMs: number,
  ])[]
}

/** Shares of a limit. */
export const USED_BOUNDS: readonly number[] = SHARES

/** The live figures of this process, as text. */
export function liveText(
  snapshot: Snapshot,
  parts: Pick<LiveFigures, 'startedAt' | 'records' | 'overMs' | 'counts'>,
): string {
  const figures: LiveFigures = {
    host: hostname().slice(0, 64),
    pid: process.pid,
    ...parts,
    gauges: gaugesOf(snapshot),
    used: usedOf(snapshot),
    stores: snapshot.stores
      .slice(0, MAX_ROWS)
      .map(({ store, state, since, pending }) => [store, state === 'available' ? 1 : 0, since, pending] as const),
    ...outboundOf(snapshot, Date.now()),
  }
  return JSON.stringify({ form: FORM, ...figures })
}

function gaugesOf({ queues, permits }: Snapshot): LiveFigures['gauges'] {
  const gauges = new SummedRows(MAX_ROWS)
  for (const { policy, waiting } of queues) gauges.add(policy, '', [waiting, 0])
  for (const { policy, active } of permits) gauges.add(policy, '', [0, active])
  return gauges.read().map(([policy, , [waiting = 0, held = 0]]) => [policy, waiting, held])
}

function usedOf({ used }: Snapshot): LiveFigures['used'] {
  const rows = new SummedRows(MAX_ROWS)
  for (const row of used) {
    if (row.policy === CONSOLE_LIMITER) continue
    rows.add(row.ownPolicy, row.limit, [...neededOf(row).counts, row.refusedElsewhere], row.capacity)
  }
  return rows.read().map(([policy, limit, sums, capacity]) => {
    return [policy, limit, sums.slice(0, -1), capacity, sums.at(-1)] as const
  })
}

/** In ms from now: the clocks of processes may differ. */
function outboundOf({ outbound }: Snapshot, now: number): Pick<LiveFigures, 'holds' | 'quotas'> {
  const quotas = outbound.flatMap(({ policy, limits }) => limits.map((limit) => ({ policy, ...limit })))
  return {
    holds: outbound
      .slice(0, MAX_ROWS)
      .map(({ policy, heldUntil }) => [policy, Math.max(0, Math.ceil(heldUntil - now))] as const),
    quotas: quotas
      .sort((one, other) => other.toldAt - one.toldAt)
      .slice(0, MAX_QUOTAS)
      .map(({ policy, name, unit, limit = null, remaining = null, resetAt, toldAt }) => {
        const resetAfterMs = resetAt === undefined ? null : Math.ceil(resetAt - now)
        const names = [policy, name.slice(0, MAX_NAME), unit.slice(0, MAX_NAME)] as const
        return [...names, limit, remaining, resetAfterMs, Math.max(0, now - toldAt)] as const
      }),
  }
}

/** Whether a process has more policies or limits than it has rows, so that a row of their name lacks its decisions. */
export function hasOthers({ used }: LiveFigures): boolean {
  // Where there are fewer, one of the user's own is called so.
  return used.length >= MANY_ROWS && used.some(([policy, limit]) => policy === OTHER || limit === OTHER)
}

/** Undefined for a text that is none of this version. */
export function liveIn(text: string): LiveFigures | undefined {
  if (text.length > MAX_TEXT) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return isLive(value) ? value : undefined
}

type Test = (value: unknown) => boolean

const isText: Test = (value) => typeof value === 'string' && value.length <= 256
/** As sums of a thousand processes stay exact. */
const isCount: Test = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isTime: Test = (value) => typeof value === 'number' && value >= 0 && value < 2 ** 48
const isCountOrNone: Test = (value) => value === null || isCount(value)
const isSpanOrNone: Test = (value) =>
  value === null || (Number.isSafeInteger(value) && Math.abs(value as number) < 2 ** 48)
const isCountOrAbsent: Test = (value) => value === undefined || isCount(value)
const isBuckets: Test = (value) => Array.isArray(value) && value.length === SHARES.length + 1 && value.every(isCount)

function isRows(value: unknown, max: number, ...tests: Test[]): boolean {
  if (!Array.isArray(value) || value.length > max) return false
  return value.every((row) => Array.isArray(row) && tests.every((test, i) => test(row[i])))
}

function isLive(value: unknown): value is LiveFigures {
  if (typeof value !== 'object' || value === null) return false
  const {
    form,
    host,
    pid,
    startedAt,
    records,
    overMs,
    counts,
    gauges,
    used,
    stores,
    holds = [],
    quotas = [],
  } = value as Partial<LiveFigures> & {
    form?: unknown
  }
  return (
    form === FORM &&
    isText(host) &&
    isCount(pid) &&
    isTime(startedAt) &&
    [undefined, 0, 1].includes(records) &&
    isTime(overMs) &&
    isRows(counts, MAX_COUNTS, isText, isCount, isCount) &&
    isRows(gauges, MAX_ROWS, isText, isCount, isCount) &&
    isRows(used, MAX_ROWS, isText, isText, isBuckets, isCountOrAbsent, isCountOrAbsent) &&
    isRows(stores, MAX_ROWS, isText, (one) => one === 0 || one === 1, isTime, isCount) &&
    isRows(holds, MAX_ROWS, isText, isTime) &&
    isRows(quotas, MAX_QUOTAS, isText, isText, isText, isCountOrNone, isCountOrNone, isSpanOrNone, isTime)
  )
}
