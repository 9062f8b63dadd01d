import { events } from '../limiter/all-events.js'
import { storesInUse } from '../limiter/stores-in-use.js'
import { countBy } from '../limiter/watching.js'
import type { StoreStats } from '../store/health.js'
import type { Store } from '../store/store.js'
import { isPropertyOf } from '../util/property-of.js'
import { Counts } from './counts.js'
import type { Metric } from './described.js'
import { OUTBOUND_METRICS } from './outbound-metrics.js'
import { POLICY_METRICS } from './policy-metrics.js'
import type { Snapshot, StoreCounts } from './snapshot.js'
import { STORE_METRICS } from './store-metrics.js'

/** Counts of this process, as `startCounting` gives them. */
export interface Counting {
  /** The counts so far. Takes no request to a store. */
  read(): Snapshot
  /** Ends it for this caller; with the last caller counting ends. A second call does nothing. */
  stop(): void
}

const MAX_STORES = 100
const MAX_WARNINGS = 100

let counts: Counts | undefined
let callers = 0
let stopListening: (() => void)[] = []

/**
 * Counts what every limiter and store of this process does, until `stop()`. Before the first call, counting costs nothing.
 * All callers share the counts, which never go down: where counting ends and begins again, it continues from the earlier
 * counts.
 *
 * @example const counting = startCounting(); setInterval(() => console.log(counting.read().decisions), 10_000)
 */
export function startCounting(): Counting {
  counts ??= new Counts()
  const shared = counts
  if (callers++ === 0) begin(shared)
  let isOn = true
  return {
    read: () => snapshotOf(shared),
    stop() {
      if (!isOn) return
      isOn = false
      if (--callers === 0) end()
    },
  }
}

function begin(shared: Counts): void {
  countBy(shared)
  stopListening = [
    events.on('strike', ({ policy }) => void shared.of(policy).abuse.strikes++),
    events.on('ban', ({ policy }) => void shared.of(policy).abuse.bans++),
    events.on('block', ({ policy = '' }) => void shared.of(policy).abuse.blocks++),
    events.on('unblock', ({ policy = '' }) => void shared.of(policy).abuse.unblocks++),
    events.on('outbound', (event) => shared.of(event.policy).outbound.add(event)),
    events.on('policies-reloaded', () => void shared.policiesReloaded++),
    events.on('warning', ({ code }) => {
      const { warnings } = shared
      if (warnings.has(code) || warnings.size < MAX_WARNINGS) warnings.set(code, (warnings.get(code) ?? 0) + 1)
    }),
  ]
}

function end(): void {
  countBy(undefined)
  for (const stop of stopListening) stop()
  stopListening = []
}

function snapshotOf(shared: Counts): Snapshot {
  const { policies } = shared
  return {
    since: shared.since,
    decisions: policies.flatMap((policy) => policy.decisions()),
    durations: policies.flatMap((policy) => policy.durations()),
    queues: policies.flatMap((policy) => policy.queues()),
    permits: shared.permits.read(),
    abuse: policies.flatMap((policy) => policy.abused()),
    used: policies.flatMap((policy) => policy.uses()),
    units: policies.flatMap((policy) => policy.charged()),
    outbound: policies.flatMap((policy) => policy.outbound.read(policy.policy)),
    reported: policies.flatMap((policy) => policy.reported()),
    stores: storeCounts(),
    warnings: [...shared.warnings].map(([code, count]) => ({ code, count })),
    policiesReloaded: shared.policiesReloaded,
  }
}

/** Numbered anew each time: stores that are gone leave no gap, so there are never more names than stores at once. */
function storeCounts(): StoreCounts[] {
  const numbers = new Map<string, number>()
  const all: StoreCounts[] = []
  for (const store of storesInUse()) {
    if (all.length === MAX_STORES) break
    const stats = statsOf(store)
    if (!stats) continue
    const number = (numbers.get(stats.kind) ?? 0) + 1
    numbers.set(stats.kind, number)
    all.push({ store: number === 1 ? stats.kind : `${stats.kind}-${number}`, ...stats })
  }
  return all
}

/** Undefined for a store that has none, or that throws: the counts of the others are read all the same. */
function statsOf(store: Store): StoreStats | undefined {
  try {
    return isPropertyOf(store, 'stats') ? store.stats?.() : undefined
  } catch {
    return undefined
  }
}

/** Every metric, for exporters: its name, and how it is read from a snapshot. */
export const METRICS: readonly Metric[] = [...POLICY_METRICS, ...OUTBOUND_METRICS, ...STORE_METRICS]
