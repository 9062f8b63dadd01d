import type { Sample } from './exposition.js'

/** The activity of a policy, per second. */
export interface PolicyFigures {
  readonly policy: string
  readonly decisions: number
  /** Refused for real; those of `enforce: { mode: 'report' }` are `reported`. */
  readonly refused: number
  readonly reported: number
  /** Decided without the store. */
  readonly alone: number
  /** Requests that wait now. */
  readonly waiting: number
  /** The limit that refused most; '' where none did. */
  readonly limit: string
}

export interface StoreFigures {
  readonly store: string
  readonly isAvailable: boolean
  readonly pending: number
  /** The keys of a memory store; undefined for others. */
  readonly keys: number | undefined
  /** Blocks and bans; undefined where that is not known. */
  readonly blocked: number | undefined
}

/** The activity between two looks at the servers. */
export interface Figures {
  readonly total: PolicyFigures
  /** Those that decided or have waiters, the busiest first. */
  readonly policies: readonly PolicyFigures[]
  /** Decisions per second by their source, most first. */
  readonly sources: readonly (readonly [source: string, perSecond: number])[]
  readonly stores: readonly StoreFigures[]
}

/** Decided without the store: by this process's own counting, or by the blocks that it knows. */
const ALONE = new Set(['local', 'mirror'])

/** The metrics of a server, and when they were read. */
export interface Seen {
  readonly atMs: number
  readonly samples: readonly Sample[]
}

/** The growth of the requests of one set of labels, per second. */
interface Growth {
  readonly labels: Sample['labels']
  readonly perSecond: number
}

/** The activity of servers between the samples `before` and `after`, by address. A new server has no growth yet. */
export function figuresOf(before: ReadonlyMap<string, Seen>, after: ReadonlyMap<string, Seen>): Figures {
  const growth = [...after].flatMap(([server, seen]) => growthOf(before.get(server), seen))
  const samples = [...after.values()].flatMap((seen) => seen.samples)
  const waiting = samples.filter(({ name }) => name === 'sluice_queued_requests')
  const names = new Set([...growth, ...waiting].map(({ labels }) => labels.policy ?? ''))
  const policies = [...names].map((policy) =>
    policyFigures(policy, ofPolicy(growth, policy), ofPolicy(waiting, policy)),
  )
  return {
    total: policyFigures('all', growth, waiting),
    policies: policies
      .filter((each) => each.decisions > 0 || each.waiting > 0)
      .sort((a, b) => b.decisions - a.decisions || a.policy.localeCompare(b.policy)),
    sources: most(sumBy(growth, ({ labels }) => labels.source ?? '')),
    stores: [...after.values()].flatMap((seen) => storesOf(seen.samples)),
  }
}

function growthOf(before: Seen | undefined, after: Seen): Growth[] {
  if (!before) return []
  const seconds = (after.atMs - before.atMs) / 1000
  const requests = (samples: readonly Sample[]) => samples.filter(({ name }) => name === 'sluice_requests_total')
  const earlier = new Map(requests(before.samples).map(({ labels, value }) => [JSON.stringify(labels), value]))
  return requests(after.samples).map(({ labels, value }) => {
    const was = earlier.get(JSON.stringify(labels)) ?? 0
    // A server that was started anew counts from 0.
    return { labels, perSecond: (value < was ? value : value - was) / seconds }
  })
}

function policyFigures(policy: string, growth: readonly Growth[], waiting: readonly Sample[]): PolicyFigures {
  const rate = (fits: (labels: Sample['labels']) => boolean) =>
    growth.reduce((sum, { labels, perSecond }) => (fits(labels) ? sum + perSecond : sum), 0)
  const isRefusal = ({ outcome }: Sample['labels']) => outcome !== 'admitted' && outcome !== 'left'
  const isReported = ({ reported }: Sample['labels']) => reported === 'true'
  const limits = sumBy(
    growth.filter(({ labels, perSecond }) => labels.limit && perSecond > 0),
    ({ labels }) => labels.limit ?? '',
  )
  return {
    policy,
    decisions: rate(() => true),
    refused: rate((labels) => isRefusal(labels) && !isReported(labels)),
    reported: rate((labels) => isRefusal(labels) && isReported(labels)),
    alone: rate(({ source = '' }) => ALONE.has(source)),
    waiting: waiting.reduce((sum, { value }) => sum + value, 0),
    limit: most(limits)[0]?.[0] ?? '',
  }
}

function storesOf(samples: readonly Sample[]): StoreFigures[] {
  const numberOf = (name: string, store: string) =>
    samples.find((sample) => sample.name === name && sample.labels.store === store)?.value
  return samples
    .filter(({ name }) => name === 'sluice_store_available')
    .map(({ labels: { store = '' }, value }) => ({
      store,
      isAvailable: value === 1,
      pending: numberOf('sluice_store_pending', store) ?? 0,
      keys: numberOf('sluice_store_keys', store),
      blocked: numberOf('sluice_store_blocked', store),
    }))
}

function ofPolicy<Each extends { readonly labels: Sample['labels'] }>(all: readonly Each[], policy: string): Each[] {
  return all.filter(({ labels }) => (labels.policy ?? '') === policy)
}

function sumBy(growth: readonly Growth[], nameOf: (growth: Growth) => string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const each of growth) {
    const name = nameOf(each)
    sums.set(name, (sums.get(name) ?? 0) + each.perSecond)
  }
  return sums
}

function most(sums: ReadonlyMap<string, number>): [string, number][] {
  return [...sums].filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
}
