import { getOrInsert } from '@sluice/core/internal'
import { rankOf } from '../figures/rank.js'
import type { ClientWindows } from './client-windows.js'
import {
  type ClientAtLimit,
  type LimitStep,
  MAX_ABOVE,
  type ProposedGroup,
  type ProposedLimit,
  type ProposedWindow,
  type WindowOfGroup,
} from './proposal.js'
import { type GroupTraffic, networkName, networkOf, type Traffic } from './traffic.js'

/** Clients that a guess needs: with fewer, the 99.9th percentile is the busiest of them. */
export const FEWEST_CLIENTS = 1000
/** A guess is so many times the 99.9th percentile of worst windows. */
const TIMES = 1.5
const SHARE = 0.001
/** A client for whom a further limit is proposed is so many times above it. */
const STANDS_OUT = 2
/** Of the clients of a group, at most this share stands out, or as few: more are the ordinary ones that are none of the good. */
const FEW_SHARE = 0.005
const FEW = 3
/** The share of requests from which on a group of paths is looked at, and how many groups. */
const LEAST_TRAFFIC = 0.001
const MAX_GROUPS = 20
/** The greatest limit of a log. */
const MAX_LIMIT = 1_000_000
const MAX_BELOW = 20

/** What limits follow from. */
export interface Basis {
  readonly windows: readonly CountedWindow[]
  readonly hasGood: boolean
}

/** A window of limits, and where its counts are. */
export interface CountedWindow {
  readonly windowMs: number
  readonly place: number
  /** That of a window that is longer by the resolution of the log's times: exact times count no more in one of this length. */
  readonly longerPlace: number
}

/** A window of a group, while limits are chosen. */
interface Candidate extends WindowOfGroup {
  readonly policy: string
  readonly group: GroupTraffic
  readonly of: ClientWindows
  /** The place of the window. */
  readonly place: number
  readonly sorted: Float64Array
  readonly good: number | undefined
  readonly limit: number | undefined
  /** Rows above the limit. */
  readonly above: readonly number[]
}

/** The limits of a document, and what they follow from. */
export interface Chosen {
  readonly limits: readonly ProposedLimit[]
  readonly groups: readonly ProposedGroup[]
  readonly above: readonly ClientAtLimit[]
  readonly touched: number
  readonly below: readonly ClientAtLimit[]
}

/**
 * Chooses limits from the worst windows of a log: those of each client on all paths, less those that others imply, and of the rest
 * each by which a client or network that no chosen one refuses stands out.
 */
export function choose(traffic: Traffic, basis: Basis): Chosen {
  const groups = groupsOf(traffic).map((group, i) => ({ group, candidates: candidatesOf(group, i, basis) }))
  const kept = keptOf(groups.flatMap(({ candidates }) => candidates))
  return {
    limits: kept.map((candidate) => {
      const { policy, paths, counts, windowMs, limit, above } = candidate
      return {
        policy,
        paths,
        counts,
        windowMs,
        limit: limit as number,
        refused: above.length,
        steps: stepsOf(candidate),
      }
    }),
    groups: groups.map(({ group, candidates }) => ({
      paths: group.pattern,
      requests: group.requests,
      clients: group.clients.size,
      windows: candidates.map((candidate) => windowReport(candidate, kept.includes(candidate))),
    })),
    above: withClients(traffic, clientsAt(kept, true).slice(0, MAX_ABOVE)),
    touched: touchedBy(traffic, kept),
    below: withClients(traffic, clientsAt(kept, false).slice(0, MAX_BELOW)),
  }
}

function groupsOf({ all, byPattern }: Traffic): readonly GroupTraffic[] {
  const busy = [...byPattern.values()].filter(({ requests }) => requests >= LEAST_TRAFFIC * all.requests)
  return [all, ...busy.sort((a, b) => b.requests - a.requests).slice(0, MAX_GROUPS)]
}

function candidatesOf(group: GroupTraffic, i: number, { windows, hasGood }: Basis): Candidate[] {
  const name = i === 0 ? 'all' : nameOf(group.pattern as string, i)
  return (['clients', 'networks'] as const).flatMap((counts) => {
    const of = group[counts]
    return windows.map(({ windowMs, place, longerPlace }): Candidate => {
      const sorted = sortedOf(of, longerPlace)
      const good = hasGood ? greatestGood(of, longerPlace) : undefined
      const limit = limitFrom(sorted, hasGood, good)
      const above = limit === undefined ? [] : rowsOf(of).filter((row) => of.worstOf(row, place) > limit)
      const policy = counts === 'clients' ? name : `${name}-networks`
      return { policy, paths: group.pattern, counts, windowMs, group, of, place, sorted, good, limit, above }
    })
  })
}

/** The name of a policy for a pattern: that of its last segment, and its place, as two may end alike. */
function nameOf(pattern: string, i: number): string {
  const segments = pattern.split('/').filter((segment) => segment !== '' && segment !== '**')
  const last = (segments.at(-1) ?? 'root').replace(/[^a-z\d-]/g, '-')
  return `${last.slice(0, 30)}-${i}`
}

function rowsOf(of: ClientWindows): number[] {
  return Array.from({ length: of.size }, (_, row) => row)
}

/** Worst windows, highest first. */
function sortedOf(of: ClientWindows, place: number): Float64Array {
  return Float64Array.from({ length: of.size }, (_, row) => of.worstOf(row, place))
    .sort()
    .reverse()
}

function greatestGood(of: ClientWindows, place: number): number | undefined {
  let greatest: number | undefined
  for (let row = 0; row < of.size; row++) {
    if (of.isGood(row)) greatest = Math.max(greatest ?? 0, of.worstOf(row, place))
  }
  return greatest
}

function limitFrom(sorted: Float64Array, hasGood: boolean, good: number | undefined): number | undefined {
  const limit = hasGood ? good : sorted.length >= FEWEST_CLIENTS ? Math.ceil(TIMES * p999(sorted)) : undefined
  return limit !== undefined && limit <= MAX_LIMIT ? limit : undefined
}

/** At most 0.1 % are above it. */
function p999(sorted: Float64Array): number {
  return sorted[Math.floor(sorted.length * SHARE)] as number
}

function keptOf(candidates: readonly Candidate[]): readonly Candidate[] {
  const known = candidates.filter(({ limit }) => limit !== undefined)
  const ofAll = known.filter(({ paths, counts }) => paths === undefined && counts === 'clients')
  const kept = ofAll.filter((candidate) => !isImplied(candidate, ofAll))
  const covered = new Covered()
  for (const candidate of kept) covered.add(candidate)
  const rest = known.filter((candidate) => !ofAll.includes(candidate) && refusesFew(candidate))
  // A network that stands out as one needs no limits of its clients.
  const phases: ((candidate: Candidate) => boolean)[] = [
    ({ paths }) => paths === undefined,
    ({ counts }) => counts === 'clients',
    ({ counts }) => counts === 'networks',
  ]
  for (const isOfPhase of phases) {
    const left = rest.filter(isOfPhase)
    for (let best = bestOf(left, covered); best; best = bestOf(left, covered)) {
      kept.push(best)
      covered.add(best)
    }
  }
  return candidates.filter((candidate) => kept.includes(candidate))
}

function refusesFew({ of, above }: Candidate): boolean {
  return above.length <= Math.max(FEW, FEW_SHARE * of.size)
}

/** The limit by which most clients stand out that no other refuses; among equal ones, by which one stands out the most. */
function bestOf(candidates: readonly Candidate[], covered: Covered): Candidate | undefined {
  let best: { readonly candidate: Candidate; readonly rows: number; readonly times: number } | undefined
  for (const candidate of candidates) {
    const { of, place, limit = 1, above } = candidate
    const timesOf = (row: number) => of.worstOf(row, place) / limit
    const rows = above.filter((row) => timesOf(row) >= STANDS_OUT && !covered.has(candidate, row))
    if (rows.length === 0 || rows.length < (best?.rows ?? 0)) continue
    const times = rows.reduce((most, row) => Math.max(most, timesOf(row)), 0)
    if (!best || rows.length > best.rows || times > best.times) best = { candidate, rows: rows.length, times }
  }
  return best?.candidate
}

/** Whether a limit never refuses what another one of the same clients admits. */
function isImplied({ windowMs, limit = 0 }: Candidate, others: readonly Candidate[]): boolean {
  return others.some((other) => {
    const otherLimit = other.limit as number
    if (other.windowMs < windowMs) return limit >= otherLimit * Math.ceil(windowMs / other.windowMs)
    // A longer window that admits no more.
    return other.windowMs > windowMs && limit >= otherLimit
  })
}

/** The clients and networks that chosen limits refuse. */
class Covered {
  readonly #clients = new Set<string>()
  readonly #networks = new Set<string>()
  /** By group and network: the rows of its refused clients. */
  readonly #rows = new Map<GroupTraffic, ReadonlyMap<string, readonly number[]>>()

  add({ counts, of, above }: Candidate): void {
    const names = counts === 'clients' ? this.#clients : this.#networks
    for (const row of above) names.add(of.nameOf(row))
    this.#rows.clear()
  }

  /** Whether a client or its network is refused; or a network, or a client that has half of the network's worst window. */
  has({ group, counts, of, place }: Candidate, row: number): boolean {
    const name = of.nameOf(row)
    if (counts === 'clients') return this.hasClient(name)
    if (this.#networks.has(name)) return true
    const { clients } = group
    const half = of.worstOf(row, place) / 2
    return (this.#rowsIn(group).get(name) ?? []).some((row) => clients.worstOf(row, place) >= half)
  }

  /** Whether a client or its network is refused. */
  hasClient(client: string): boolean {
    if (this.#clients.has(client)) return true
    const network = this.#networks.size > 0 ? networkOf(client) : undefined
    return network !== undefined && this.#networks.has(network)
  }

  #rowsIn(group: GroupTraffic): ReadonlyMap<string, readonly number[]> {
    let rows = this.#rows.get(group)
    if (!rows) {
      const byNetwork = new Map<string, number[]>()
      for (const row of rowsOf(group.clients)) {
        const name = group.clients.nameOf(row)
        const network = this.#clients.has(name) ? networkOf(name) : undefined
        if (network !== undefined) getOrInsert(byNetwork, network, () => []).push(row)
      }
      rows = byNetwork
      this.#rows.set(group, rows)
    }
    return rows
  }
}

/** Limits around one, as parts and multiples of it. */
const STEPS = [0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10]

function stepsOf({ of, place, limit = 1 }: Candidate): LimitStep[] {
  const limits = [...new Set(STEPS.map((times) => Math.max(1, Math.round(times * limit))))]
  return limits.map((limit) => {
    let [refused, good] = [0, 0]
    for (let row = 0; row < of.size; row++) {
      if (of.worstOf(row, place) <= limit) continue
      refused++
      if (of.isGood(row)) good++
    }
    return { limit, refused, good }
  })
}

function windowReport(candidate: Candidate, isProposed: boolean): ProposedWindow {
  const { paths, counts, windowMs, sorted, good, limit, above } = candidate
  return {
    paths,
    counts,
    windowMs,
    clients: sorted.length,
    median: sorted[Math.floor(sorted.length / 2)] ?? 0,
    p999: p999(sorted) ?? 0,
    max: sorted[0] ?? 0,
    good,
    limit,
    refused: above.length,
    isProposed,
    rank: rankOf(sorted),
  }
}

/** Clients and networks with the limit that each is the farthest above, or closest to without being above any. */
function clientsAt(kept: readonly Candidate[], isAbove: boolean): ClientAtLimit[] {
  const aboveAny = new Set(kept.flatMap((candidate) => candidate.above.map((row) => identityOf(candidate, row))))
  const found = new Map<string, ClientAtLimit>()
  for (const candidate of kept) {
    const { policy, paths, counts, windowMs, of, place, limit = 1, above } = candidate
    for (const row of isAbove ? above : closest(candidate)) {
      const identity = identityOf(candidate, row)
      if (!isAbove && aboveAny.has(identity)) continue
      const worst = of.worstOf(row, place)
      const known = found.get(identity)
      if (known && known.worst / known.limit >= worst / limit) continue
      const client = { requests: of.requestsOf(row), isGood: of.isGood(row) }
      found.set(identity, { identity, policy, paths, counts, windowMs, limit, worst, ...client })
    }
  }
  return [...found.values()].sort((a, b) => b.worst / b.limit - a.worst / a.limit)
}

function touchedBy({ all: { clients } }: Traffic, kept: readonly Candidate[]): number {
  const covered = new Covered()
  for (const candidate of kept) covered.add(candidate)
  return rowsOf(clients).filter((row) => covered.hasClient(clients.nameOf(row))).length
}

/** Networks with the number of their clients in the log. */
function withClients({ all: { clients } }: Traffic, found: readonly ClientAtLimit[]): readonly ClientAtLimit[] {
  const byNetwork = new Map(found.filter(({ counts }) => counts === 'networks').map(({ identity }) => [identity, 0]))
  if (byNetwork.size === 0) return found
  for (const row of rowsOf(clients)) {
    const network = networkOf(clients.nameOf(row))
    const identity = network === undefined ? '' : `ip=${networkName(network)}`
    const known = byNetwork.get(identity)
    if (known !== undefined) byNetwork.set(identity, known + 1)
  }
  return found.map((client) =>
    client.counts === 'networks' ? { ...client, clients: byNetwork.get(client.identity) as number } : client,
  )
}

function identityOf({ counts, of }: Candidate, row: number): string {
  const name = of.nameOf(row)
  return `ip=${counts === 'networks' ? networkName(name) : name}`
}

/** Rows that may be among the closest: of a million clients, only those near the limit get a name. */
function closest({ of, place, sorted, above }: Candidate): number[] {
  const least = sorted[Math.min(sorted.length - 1, above.length + MAX_BELOW)] ?? 0
  return rowsOf(of).filter((row) => of.worstOf(row, place) >= Math.max(least, 2))
}
