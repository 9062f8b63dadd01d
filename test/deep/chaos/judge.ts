import { readFileSync } from 'node:fs'
import type { App } from './apps.js'
import { BURST, DEADLINES_MS, LEASE, LIMIT, PERMITS, PERMITS_TTL_MS, WINDOW_MS } from './limits.js'

/** One verdict as its process recorded it; the decision was made between `from` and `to`. */
export interface Entry {
  readonly limiter: string
  readonly key: string
  readonly isStores: boolean
  readonly allowed: boolean
  readonly from: number
  readonly to: number
  /** The part of that time in which its process was not scheduled, in ms. */
  readonly late: number
}

/** The time in which a permit was certainly held. */
export interface Stay {
  readonly key: string
  readonly from: number
  readonly to: number
}

/** An interval in which the store may have lost its counts, once. */
export type Loss = readonly [from: number, to: number]

export interface Judgement {
  readonly requests: number
  readonly byStore: number
  readonly locally: number
  readonly refused: number
  /** The largest excess of admissions by the store in any window, over a limit and known losses; over all limits. */
  readonly overByStore: number
  /** The excesses by limiter and key. */
  readonly excesses: readonly string[]
  /** The largest excess of local admissions of a process. */
  readonly overLocally: number
  /** The largest excess in any window, without allowance for losses. */
  readonly afterLosses: number
  /** The longest decision, and the longest time beyond a deadline less the time in which the process was not scheduled, in ms. */
  readonly longestMs: number
  readonly beyondDeadlineMs: number
  /** Charges to the ledger that were reported to clients. */
  readonly ledger: ReadonlyMap<string, number>
}

export function judge(apps: readonly App[], losses: readonly Loss[], share: number): Judgement {
  const logs = apps.map((app) => read(app))
  const entries = logs.flatMap((log) => log.entries)
  const admitted = entries.filter(({ allowed }) => allowed)
  const byStore = admitted.filter(({ isStores }) => isStores)
  const excesses = (forgiven: readonly Loss[]) =>
    [
      ...Object.entries(MOST).flatMap(([limiter, most]) =>
        byKey(byStore.filter((entry) => entry.limiter === limiter)).map((some) => ({
          of: `${limiter} ${some[0]?.key}`,
          units: largestExcess(some, most, limiter === 'leased' ? forgiven.map(whileLeased) : forgiven),
        })),
      ),
      ...byKey(logs.flatMap(({ stays }) => stays)).map((stays) => ({
        of: `permits ${stays[0]?.key}`,
        units: largestPermitExcess(stays, forgiven),
      })),
    ].filter(({ units }) => units > 0)
  const unforgiven = excesses(losses)
  const own = logs.flatMap((log) =>
    Object.keys(MOST).flatMap((limiter) =>
      byKey(log.entries.filter((entry) => entry.limiter === limiter && entry.allowed && !entry.isStores)).map((some) =>
        largestExcess(some, inAnyWindow(limiter, share), []),
      ),
    ),
  )
  const ledger = new Map<string, number>()
  for (const { limiter, key } of byStore) {
    if (limiter === 'ledger') ledger.set(key, (ledger.get(key) ?? 0) + 1)
  }
  return {
    requests: entries.length,
    byStore: entries.filter(({ isStores }) => isStores).length,
    locally: entries.filter(({ isStores }) => !isStores).length,
    refused: entries.filter(({ allowed }) => !allowed).length,
    overByStore: highest(unforgiven, ({ units }) => units, 0),
    excesses: unforgiven.map(({ of, units }) => `${of}: ${units}`),
    overLocally: Math.max(0, ...own),
    afterLosses: highest(excesses([]), ({ units }) => units, 0),
    longestMs: highest(entries, ({ from, to }) => to - from),
    beyondDeadlineMs: highest(
      entries,
      ({ from, to, late, limiter }) => to - from - late - (DEADLINES_MS[limiter] as number),
    ),
    ledger,
  }
}

/** The most units in any window, by limiter. A bucket begins full, and refills during the window. */
function inAnyWindow(limiter: string, share = 1): number {
  const part = (units: number) => Math.max(1, Math.floor(units * share))
  if (limiter === 'bucket') return part(BURST) + Math.ceil((part(LIMIT) * (WINDOW_MS + 2)) / WINDOW_MS)
  return part(LIMIT)
}

const MOST: Record<string, number> = {
  log: inAnyWindow('log'),
  bucket: inAnyWindow('bucket'),
  leased: inAnyWindow('leased'),
}

/**
 * The largest number of admissions that were certainly made within less than a window, less the allowed ones. The store
 * counts in whole ms: events 499.1 ms apart may be 500 apart by its clock.
 */
export function largestExcess(entries: readonly Entry[], allowed: number, losses: readonly Loss[]): number {
  const sorted = [...entries].sort((a, b) => a.from - b.from)
  let most = Number.NEGATIVE_INFINITY
  for (let i = 0; i < sorted.length; i++) {
    const { from } = sorted[i] as Entry
    const end = from + WINDOW_MS - 1
    let inside = 0
    let last = from
    for (let j = i; j < sorted.length && (sorted[j] as Entry).from < end; j++) {
      const { to } = sorted[j] as Entry
      if (to >= end) continue
      inside++
      last = Math.max(last, to)
    }
    most = Math.max(most, inside - allowed * (1 + lossesIn(from, last, losses)))
  }
  return most
}

/** The largest number of permits that were certainly held at one instant, less the allowed ones. */
export function largestPermitExcess(stays: readonly Stay[], losses: readonly Loss[]): number {
  let most = Number.NEGATIVE_INFINITY
  for (const { from } of stays) {
    const inside = stays.filter((stay) => stay.from <= from && from < stay.to)
    // The store may have lost permits that are still held.
    const forgotten = lossesIn(Math.min(...inside.map((stay) => stay.from)) - PERMITS_TTL_MS, from, losses)
    most = Math.max(most, inside.length - PERMITS * (1 + forgotten))
  }
  return most
}

/** Units leased before a loss are spent after it, so the loss extends by the ttl of a lease. */
function whileLeased([from, to]: Loss): Loss {
  return [from, to + LEASE.ttl]
}

function lossesIn(from: number, to: number, losses: readonly Loss[]): number {
  return losses.filter((loss) => loss[0] <= to && loss[1] >= from).length
}

function byKey<T extends { readonly key: string }>(all: readonly T[]): T[][] {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(one.key)
    if (group) group.push(one)
    else groups.set(one.key, [one])
  }
  return [...groups.values()]
}

function highest<T>(all: readonly T[], value: (one: T) => number, least = Number.NEGATIVE_INFINITY): number {
  let most = least
  for (const one of all) most = Math.max(most, value(one))
  return most
}

function read(app: App): { entries: Entry[]; stays: Stay[] } {
  const entries: Entry[] = []
  const taken = new Map<string, Stay>()
  const stays: Stay[] = []
  // The last line of a killed process may be incomplete.
  for (const line of readFileSync(app.file, 'utf8').split('\n').slice(0, -1)) {
    const words = line.split(' ')
    if (words[0] === 'freed') {
      const [, key, from, to] = words as [string, string, string, string]
      taken.delete(`${key} ${from}`)
      stays.push({ key, from: Number(from), to: Number(to) })
      continue
    }
    const [limiter, key, kind, allowed, from, to, late] = words as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    const isStores = kind === 'decided'
    entries.push({
      limiter,
      key,
      isStores,
      allowed: allowed === '1',
      from: Number(from),
      to: Number(to),
      late: Number(late),
    })
    if (limiter === 'permits' && allowed === '1' && isStores) {
      taken.set(`${key} ${to}`, { key, from: Number(to), to: app.killedAt ?? Number(to) })
    }
  }
  return { entries, stays: [...stays, ...taken.values()] }
}
