import {
  DURATION_SUM,
  hasOthers,
  type LiveFigures,
  type LiveProcess,
  labelsIn,
  othersOf,
  SummedRows,
  USED_BOUNDS,
} from '@sluice/core/internal'
import { DURATION_BOUNDS } from '@sluice/core/metrics'
import type { DecisionRow, GaugeRow, ProcessFigures, SumFigures, UsedRow } from './answers.js'
import { meaningOf } from './count-names.js'
import { Outbound } from './outbound.js'
import { quantile } from './quantile.js'
import { emptyDurations, roundTripOf } from './quantiles.js'
import { rounded, Sum } from './totals.js'

/** Rows of a sum, of each kind. */
const MAX_ROWS = 256

/** Adds up the live figures of processes. */
export class LiveSum {
  readonly processes: ProcessFigures[] = []
  /** Names of counts that this version does not know. */
  unknown = 0
  /** Processes that have more limits than rows. */
  readonly incomplete: string[] = []
  readonly #totals = new Sum()
  readonly #perSecond = new Sum()
  readonly #rows = new Map<string, { count: number; perSecond: number }>()
  readonly #durations = emptyDurations()
  #durationMs = 0
  readonly #gauges = new SummedRows(MAX_ROWS)
  readonly #used = new SummedRows(MAX_ROWS)
  readonly #outbound: Outbound

  /** @param now of the store, in ms */
  constructor(now: number) {
    this.#outbound = new Outbound(now)
  }

  add(process: Pick<LiveProcess, 'run' | 'ageMs'>, figures: LiveFigures): void {
    const own = { totals: new Sum(), perSecond: new Sum(), durations: emptyDurations() }
    for (const [name, count, more] of figures.counts) this.#addCount(own, name, count, (more * 1000) / figures.overMs)
    this.#totals.addAll(own.totals)
    this.#perSecond.addAll(own.perSecond)
    for (const [i, count] of own.durations.entries()) (this.#durations[i] as number) += count
    for (const [policy, waiting, permits] of figures.gauges) this.#gauges.add(policy, '', [waiting, permits])
    for (const [policy, limit, counts, capacity = 0, refusedElsewhere = 0] of figures.used) {
      this.#used.add(policy, limit, [...counts, refusedElsewhere], capacity)
    }
    this.#outbound.add(process.ageMs, figures)
    if (hasOthers(figures)) this.incomplete.push(`${figures.host} (pid ${figures.pid})`)
    const { host, pid, startedAt, records, gauges, stores } = figures
    this.processes.push({
      id: process.run,
      host,
      pid,
      startedAt,
      ageMs: process.ageMs,
      ...(records !== undefined && { recordsRefusals: records === 1 }),
      totals: own.totals.read(),
      perSecond: roundedSum(own.perSecond),
      roundTrip: roundTripOf(own.durations),
      stores: stores.map(([store, isAvailable, since, pending]) => ({
        store,
        state: isAvailable === 1 ? 'available' : 'unavailable',
        since,
        pending,
      })),
      waiting: gauges.reduce((sum, [, waiting]) => sum + waiting, 0),
      permits: gauges.reduce((sum, [, , permits]) => sum + permits, 0),
    })
  }

  read(): SumFigures {
    const gauges = this.#gauges
      .read()
      .map(([policy, , [waiting = 0, permits = 0]]): GaugeRow => ({ policy, waiting, permits }))
    return {
      totals: this.#totals.read(),
      perSecond: roundedSum(this.#perSecond),
      rows: this.#readRows(),
      gauges,
      used: this.#used.read().map(usedRow),
      outbound: this.#outbound.read(),
      roundTrip: roundTripOf(this.#durations),
      durations: {
        bounds: DURATION_BOUNDS,
        counts: this.#durations,
        sum: this.#durationMs,
        count: this.#durations.reduce((sum, count) => sum + count, 0),
      },
      waiting: gauges.reduce((sum, { waiting }) => sum + waiting, 0),
      permits: gauges.reduce((sum, { permits }) => sum + permits, 0),
      away: this.processes.filter(({ stores }) => stores.some(({ state }) => state === 'unavailable')).length,
    }
  }

  #addCount(own: { totals: Sum; perSecond: Sum; durations: number[] }, name: string, count: number, perSecond: number) {
    const { labels, bucket, isUnknown } = meaningOf(name)
    if (bucket !== undefined) (own.durations[bucket] as number) += count
    if (name === DURATION_SUM) this.#durationMs += count / 1000
    if (isUnknown) this.unknown++
    if (!labels) return
    own.totals.add(labels, count)
    own.perSecond.add(labels, perSecond)
    addTo(this.#rows, name, count, perSecond)
  }

  #readRows(): DecisionRow[] {
    const rows = largest(
      this.#rows,
      ({ count }) => count,
      ([name, { count, perSecond }], into) => addTo(into, name, count, perSecond),
    )
    return rows.flatMap(([name, { count, perSecond }]) => {
      const labels = labelsIn(name)
      return labels ? [{ ...labels, count, perSecond: rounded(perSecond) }] : []
    })
  }
}

/** The largest entries in their order; the others are added to those that stand for others. */
export function largest<Value>(
  all: ReadonlyMap<string, Value>,
  sizeOf: (value: Value) => number,
  add: (entry: [string, Value], into: Map<string, Value>) => void,
): [string, Value][] {
  const ordered = [...all].sort(([, one], [, other]) => sizeOf(other) - sizeOf(one))
  const kept = new Map(ordered.slice(0, MAX_ROWS))
  for (const [name, value] of ordered.slice(MAX_ROWS)) add([othersOf(name), value], kept)
  return [...kept]
}

function addTo(
  rows: Map<string, { count: number; perSecond: number }>,
  name: string,
  count: number,
  perSecond: number,
): void {
  const row = rows.get(name)
  rows.set(name, { count: (row?.count ?? 0) + count, perSecond: (row?.perSecond ?? 0) + perSecond })
}

function roundedSum({ decisions, refused, reported, alone }: Sum) {
  return {
    decisions: rounded(decisions),
    refused: rounded(refused),
    reported: rounded(reported),
    alone: rounded(alone),
  }
}

function usedRow([policy, limit, sums, capacity]: ReturnType<SummedRows['read']>[number]): UsedRow {
  const counts = sums.slice(0, -1)
  const at = (share: number) => quantile(USED_BOUNDS, counts, share)
  return {
    policy,
    limit,
    capacity: capacity > 0 ? capacity : null,
    ...(capacity < 0 && { resized: true as const }),
    bounds: USED_BOUNDS,
    counts,
    decisions: counts.reduce((sum, count) => sum + count, 0),
    refusedElsewhere: sums.at(-1) as number,
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
  }
}
