import { counted, isPrivateAddress, listed, quoted } from '@sluice/core/internal'
import type { LimitAccount, PolicyAccount } from '../figures/accounts.js'
import { GOOD } from '../figures/client-table.js'
import type { Figures } from '../figures/figures.js'
import { redisCost } from '../figures/redis-cost.js'
import type { Lane } from '../lane.js'
import type { LogsInOrder } from '../read/open-logs.js'
import type {
  Comparison,
  Counts,
  Interval,
  LimitReport,
  PolicyReport,
  RedisCost,
  RefusedClient,
  SimulationReport,
} from '../report.js'

/** What a report is made of. */
export interface Played {
  readonly logs: LogsInOrder
  readonly files: readonly string[]
  readonly firstMs: number
  readonly lastMs: number
  readonly resolutionMs: number
  /** Of one document: the first is what the report shows, and the others, of a coarse clock, bound its numbers. */
  readonly lanes: readonly Lane[]
  /** Of the document before a change. */
  readonly before: Lane | undefined
  /** The marks of good clients that no request had. Undefined where none are marked. */
  readonly absentGood: readonly string[] | undefined
  /** Sentences about what the documents have of clients that the logs do not. */
  readonly unmatched: readonly string[]
  /** Whether other limits were tried for clients with overrides, too. */
  readonly keepsOverrides: boolean
}

/** Refused clients in a report. */
const MAX_REFUSED = 100

export function makeReport(played: Played): SimulationReport {
  const { logs, lanes, before, absentGood } = played
  const all = lanes.map(({ figures }) => figures)
  const [figures] = all as [Figures]
  const { counts } = logs
  const refused = refusedClients(figures)
  return {
    form: 1,
    identities: 'plain',
    log: {
      files: played.files,
      formats: logs.formats,
      lines: counts.lines,
      unread: { count: counts.unread, examples: counts.examples },
      late: counts.late,
      firstMs: played.firstMs,
      lastMs: played.lastMs,
      resolutionMs: played.resolutionMs,
      isPartial: counts.isPartial,
    },
    caveats: [...counts.caveats, ...played.unmatched, ...caveatsOf(played, figures), ...reportedGood(refused, figures)],
    requests: boundedCounts(all),
    wouldBeRefused: figures.wouldBeRefused,
    clients: { seen: figures.clientsSeen, refused: figures.clientsRefused, ...allClients(figures) },
    policies: [...figures.accounts.byName.keys()].map((name) =>
      policyReport(all, name, absentGood !== undefined, played.resolutionMs),
    ),
    timeline: figures.timeline.report(),
    refused: refused.slice(0, MAX_REFUSED),
    good: absentGood && {
      seen: figures.goodSeen,
      refused: refused.filter(isRefusedGood(figures)),
      absent: absentGood,
    },
    against: before && compared(before.figures, figures, refused),
    redis: costOf(played, figures),
    splits: figures.splits?.report() ?? { byPaths: [], byStatus: [], byClient: [] },
  }
}

function boundedBy(total: number, refused: Interval): Pick<Counts, 'admitted' | 'refused'> {
  return { refused, admitted: { min: total - refused.max, max: total - refused.min } }
}

/** Those of all requests: of policies without bounds as they are in each replay, and of the others within their bounds. */
function boundedCounts(all: readonly Figures[]): Counts {
  const [first] = all as [Figures]
  const enforced = [...first.bounds].flatMap(([{ name, isReported }, { refused }]) =>
    refused && !isReported ? [{ name, bounds: refused.requests }] : [],
  )
  const counts = countsOf(all, (each) => each)
  if (enforced.length === 0) return counts
  const rest = intervalOf(
    all.map(({ accounts, refused }) =>
      enforced.reduce((left, { name }) => left - (accounts.byName.get(name) as PolicyAccount).refused, refused),
    ),
  )
  const sum = (of: 'min' | 'max') => enforced.reduce((sum, { bounds }) => sum + bounds[of], rest[of])
  return { ...counts, ...boundedBy(counts.total, { min: sum('min'), max: sum('max') }) }
}

/** Of addresses, where every policy counts them, and its bounds are known. */
function allClients({ bounds, accounts, clientsSeen }: Figures): { readonly refusedBounds?: Interval } {
  const enforced = [...accounts.byName.values()].filter(({ isReported }) => !isReported)
  const known = enforced.flatMap((policy) => {
    const isByAddress = policy.limits.every(({ limit }) => (limit.key?.kind ?? 'ip') === 'ip')
    return (isByAddress && bounds.get(policy)?.refused?.clients) || []
  })
  if (known.length === 0 || known.length < enforced.length) return {}
  const most = known.reduce((sum, { max }) => sum + max, 0)
  return { refusedBounds: { min: Math.max(...known.map(({ min }) => min)), max: Math.min(most, clientsSeen) } }
}

interface Counted {
  readonly total: number
  readonly refused: number
  readonly banned: number
  readonly delayed: number
}

function countsOf(all: readonly Figures[], of: (figures: Figures) => Counted): Counts {
  const counted = all.map(of)
  const total = (counted[0] as Counted).total
  return {
    total,
    admitted: intervalOf(counted.map((each) => each.total - each.refused)),
    refused: intervalOf(counted.map(({ refused }) => refused)),
    banned: intervalOf(counted.map(({ banned }) => banned)),
    delayed: intervalOf(counted.map(({ delayed }) => delayed)),
  }
}

function intervalOf(values: readonly number[]): Interval {
  return { min: Math.min(...values), max: Math.max(...values) }
}

function policyReport(all: readonly Figures[], name: string, hasGood: boolean, resolutionMs: number): PolicyReport {
  const [figures] = all as [Figures]
  const accounts = all.map((figures) => figures.accounts.byName.get(name) as PolicyAccount)
  const [first] = accounts as [PolicyAccount]
  const bounds = figures.bounds.get(first)?.refused
  const counted = (account: PolicyAccount): Counted => ({ ...account, refused: account.refused + account.banned })
  const requests = countsOf(all, (figures) => counted(figures.accounts.byName.get(name) as PolicyAccount))
  return {
    name,
    mode: first.isReported ? 'report' : 'enforce',
    requests: bounds ? { ...requests, ...boundedBy(requests.total, bounds.requests) } : requests,
    clients: {
      seen: first.clientsSeen,
      refused: first.clientsRefused,
      ...(bounds && { refusedBounds: bounds.clients }),
    },
    isBounded: bounds !== undefined || resolutionMs <= 1,
    limits: first.limits.map((account, i) => ({
      ...limitReport(accounts.map(({ limits }) => limits[i] as LimitAccount)),
      ...(!bounds && { headroomBounds: undefined }),
      ...(bounds && first.limits.length === 1 && { refused: bounds.requests }),
      ...figures.curves?.report(first, account, hasGood ? isGoodRow(figures, account) : undefined),
    })),
    bans: first.hasBans ? first.bans : undefined,
    waits: first.waits.report(),
  }
}

function limitReport(accounts: readonly LimitAccount[]): LimitReport {
  const [{ name, limit }] = accounts as [LimitAccount]
  return {
    name,
    algorithm: limit.algorithm,
    limit: Number(limit.limit),
    windowMs: Number(limit.window),
    ...(limit.calendar && { calendar: limit.calendar.window }),
    unit: limit.unit ?? 'requests',
    refused: intervalOf(accounts.map(({ refused }) => refused)),
    rank: undefined,
    tradeOff: undefined,
    headroom: undefined,
  }
}

/** Whether a client that a limit counts is marked good, by its row. */
function isGoodRow({ tables }: Figures, { limit }: LimitAccount): (row: number) => boolean {
  const table = tables.get(limit.key?.kind ?? 'ip')
  return (row) => table?.has(row, GOOD) === true
}

function costOf({ firstMs, lastMs }: Played, { accounts, decisions, tables }: Figures): RedisCost {
  const limits = [...accounts.byName.values()].flatMap(({ limits, clientsSeen }) =>
    limits.map(({ limit }) => ({ limit, keys: clientsSeen })),
  )
  const busiest: { identity: string; requests: number }[] = []
  for (const [kind, table] of tables) {
    for (let column = 0; column < accounts.columnCount(kind); column++) {
      for (let row = 0; row < table.size; row++) {
        const { requests } = table.countsOf(row, column)
        if (requests > MANY) busiest.push({ identity: `${kind}=${table.nameOf(row)}`, requests })
      }
    }
  }
  return redisCost(decisions, limits, busiest, lastMs - firstMs)
}

/** Fewer requests of one client are never so many a second that a lease is worth it. */
const MANY = 100

/** Every refused client of each policy, those with the most refusals first. */
function refusedClients(figures: Figures): RefusedClient[] {
  const { accounts, tables } = figures
  const refused: RefusedClient[] = []
  for (const [kind, table] of tables) {
    for (let column = 0; column < accounts.columnCount(kind); column++) {
      const policy = accounts.policyAt(kind, column).name
      for (let row = 0; row < table.size; row++) {
        const counts = table.countsOf(row, column)
        if (counts.refused === 0) continue
        const identity = `${kind}=${table.nameOf(row)}`
        refused.push({ identity, policy, ...counts, ...table.detailsOf(row, column), isGood: table.has(row, GOOD) })
      }
    }
  }
  return refused.sort((a, b) => b.refused - a.refused || a.firstMs - b.firstMs)
}

function isRefusedGood({ accounts }: Figures): (client: RefusedClient) => boolean {
  return ({ isGood, policy }) => isGood && accounts.byName.get(policy)?.isReported === false
}

function compared(before: Figures, after: Figures, refused: readonly RefusedClient[]): Comparison {
  const isEnforced = (figures: Figures) => (client: RefusedClient) =>
    figures.accounts.byName.get(client.policy)?.isReported === false
  const refusedBefore = refusedClients(before).filter(isEnforced(before))
  const refusedAfter = refused.filter(isEnforced(after))
  const [then, now] = [refusedBefore, refusedAfter].map((all) => new Set(all.map(({ identity }) => identity)))
  return {
    newlyRefused: refusedAfter.filter(({ identity }) => !then?.has(identity)),
    noLongerRefused: refusedBefore.filter(({ identity }) => !now?.has(identity)),
    requestsRefused: (after.refused - before.refused) / Math.max(1, after.total),
    requestsNewlyRefused: newRefusals(before, after) / Math.max(1, after.total),
  }
}

function newRefusals(before: Figures, after: Figures): number {
  const earlier = new Map<string, number>()
  for (const [row, count] of before.refusals ?? []) earlier.set(before.addresses.nameOf(row), count)
  let sum = 0
  for (const [row, count] of after.refusals ?? []) {
    sum += Math.max(0, count - (earlier.get(after.addresses.nameOf(row)) ?? 0))
  }
  return sum
}

/** Good clients that nothing refuses so far. */
function reportedGood(refused: readonly RefusedClient[], { accounts }: Figures): string[] {
  const isReported = ({ isGood, policy }: RefusedClient) => isGood && accounts.byName.get(policy)?.isReported === true
  const count = new Set(refused.filter(isReported).map(({ identity }) => identity)).size
  if (count === 0) return []
  return [`${counted(count, 'good client')} would be refused by policies in report mode, once these are enforced.`]
}

/** The share of requests from one address, or from private ones, that suggests a proxy. */
const MOST = 0.5
/** Fewer requests show nothing. */
const FEWEST = 100

function caveatsOf({ lanes, resolutionMs, logs, keepsOverrides }: Played, figures: Figures): string[] {
  const caveats: string[] = []
  const { total, addresses, invalid, accounts } = figures
  const remedy = '--trust-proxy NETWORK or --client FIELD names the client'
  let ofPrivate = 0
  let [most, busiest] = [0, '']
  for (let row = 0; row < addresses.size; row++) {
    const requests = addresses.requestsOf(row)
    const name = addresses.nameOf(row)
    if (requests > most) [most, busiest] = [requests, name]
    if (isPrivateAddress(name)) ofPrivate += requests
  }
  if (logs.counts.others > 0)
    caveats.push(
      `${counted(logs.counts.others, 'line')} ${logs.counts.others === 1 ? 'is no request' : 'are no requests'}: left out.`,
    )
  const share = (requests: number) => `${Math.round((100 * requests) / total)} % of the requests`
  if (total < FEWEST) ofPrivate = most = 0
  if (most > MOST * total && (addresses.size > 1 || !isPrivateAddress(busiest))) {
    caveats.push(`${busiest} has ${share(most)}: if it is a proxy, ${remedy}.`)
  } else if (ofPrivate > MOST * total) {
    caveats.push(`Private addresses have ${share(ofPrivate)}: if they are proxies, ${remedy}.`)
  }
  const unbounded = [...accounts.byName.values()].filter((policy) => !figures.bounds.get(policy)?.refused)
  if (resolutionMs > 1 && unbounded.length > 0) {
    caveats.push(
      `The log's times are to ${resolutionMs} ms, and the numbers of ${listed(unbounded.map(({ name }) => quoted(name)))} have no bound: ` +
        'exact times may refuse more or fewer. A log with $msec has them.',
    )
  }
  if (resolutionMs > 1 && unbounded.length < accounts.byName.size) {
    caveats.push(
      `The log's times are to ${resolutionMs} ms: the timeline, the lists of clients, limits beside others in a policy and the effect of other limits come without bounds.`,
    )
  }
  if (lanes.length > 1) {
    caveats.push(
      `The log's times are to ${resolutionMs} ms, and a window is shorter than three times that: numbers of refusals are ` +
        'intervals, from requests that are evenly spread over each interval of the clock to all at its beginning. ' +
        'Clients, bans, waits and curves are those of the latter.',
    )
  }
  if (invalid > 0) caveats.push(`${invalid} requests have no key, or a wrong one, and would get status 400.`)
  if (keepsOverrides) caveats.push('Other limits are tried with the overrides as they are.')
  const forgotten = lanes.reduce((sum, { forgotten }) => sum + forgotten, 0)
  if (forgotten > 0) caveats.push(`${forgotten} states were forgotten for lack of memory: some refusals are missing.`)
  if (logs.formats.length > 0 && accounts.byName.size > 0) caveats.push(...ALWAYS)
  return caveats
}

/** What no replay can know. */
const ALWAYS = ['Refused clients would retry or leave, which a log of requests that were not refused cannot show.']
