import type { DecisionOutcome, WaitedEvent } from '../limiter/events.js'
import type { ReadablePlan } from '../policy/plan.js'
import { BoundedCounts } from '../util/bounded-counts.js'
import { getOrInsert } from '../util/get-or-insert.js'
import type { DecisionSource } from '../verdict/decision.js'
import { REFUSALS } from '../verdict/refusals.js'
import { boundsLower } from './lower-limit.js'
import { OutboundCounters } from './outbound-counts.js'
import type {
  AbuseCounts,
  DecisionCount,
  DurationCounts,
  QueueCounts,
  ReportedCounts,
  UnitCounts,
  UseCounts,
} from './snapshot.js'
import { UnitCounters } from './unit-counts.js'
import { LimitUseCounts } from './use-counts.js'

const SOURCES: readonly DecisionSource[] = [
  'store',
  'deny-cache',
  'lease',
  'relaxed',
  'local',
  'mirror',
  'list',
  'response',
]
const OUTCOMES = ['admitted', ...Object.keys(REFUSALS)] as readonly DecisionOutcome[]
/** Numbers for one limit: each outcome by each source, enforced and reported. */
const ROWS = OUTCOMES.length * SOURCES.length * 2

/** In ms. A decision in memory takes less than the first, one on Redis in the same data centre less than the fifth. */
export const DURATION_BOUNDS: readonly number[] = [0.005, 0.05, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000]
/** In ms. */
export const WAIT_BOUNDS: readonly number[] = [
  1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
]

/** Limits of one tier beyond are counted as one, of this name. */
const MAX_LIMITS = 50
export const OTHER = 'other'

/** Tiers of one policy beyond are counted as one, of the name `other`. */
const MAX_TIERS = 20

/** The counts of one policy. */
export class PolicyCounts {
  readonly policy: string
  /** Whether each request was charged 1, at once and for good. */
  chargesOnes = true
  readonly abuse = { strikes: 0, bans: 0, blocks: 0, unblocks: 0 }
  readonly #tiers = new Map<string, TierCounts>()
  readonly units = new UnitCounters()
  readonly outbound = new OutboundCounters()
  readonly #durations = new Map<DecisionSource, BoundedCounts>()
  #waits: BoundedCounts | undefined
  readonly #waited = { waiting: 0, admitted: 0, refused: 0, left: 0 }

  constructor(policy: string) {
    this.policy = policy
  }

  /** `tier`: '' without tiers. */
  ofTier(tier: string): TierCounts {
    const known = this.#tiers.get(tier)
    if (known) return known
    const name = this.#tiers.size < MAX_TIERS ? tier : OTHER
    return getOrInsert(this.#tiers, name, () => new TierCounts(this.policy, name))
  }

  took(source: DecisionSource, ms: number): void {
    getOrInsert(this.#durations, source, () => new BoundedCounts(DURATION_BOUNDS)).add(ms)
  }

  waits(): (outcome: WaitedEvent['outcome'], waitedMs: number) => void {
    this.chargesOnes = false
    this.#waits ??= new BoundedCounts(WAIT_BOUNDS)
    const waits = this.#waits
    const waited = this.#waited
    waited.waiting++
    return (outcome, waitedMs) => {
      waited.waiting--
      waited[outcome]++
      waits.add(waitedMs)
    }
  }

  decisions(): DecisionCount[] {
    return [...this.#tiers.values()].flatMap((tier) => tier.decisions())
  }

  reported(): ReportedCounts[] {
    const reported = this.decisions().filter((row) => row.reported)
    const decisions = sumOf(reported)
    const refused = sumOf(reported.filter(({ outcome }) => outcome !== 'admitted'))
    return decisions > 0 ? [{ policy: this.policy, decisions, refused }] : []
  }

  durations(): DurationCounts[] {
    const { policy } = this
    return [...this.#durations].map(([source, durations]) => ({ policy, source, histogram: durations.read() }))
  }

  charged(): UnitCounts[] {
    return this.units.read(this.policy)
  }

  uses(): UseCounts[] {
    const refused = sumOf(this.decisions().filter(isByCounts))
    return [...this.#tiers.values()].flatMap((tier) =>
      tier.uses().map((uses) => ({
        ...uses,
        capacity: this.chargesOnes ? uses.capacity : 0,
        refusedElsewhere: Math.max(0, refused - uses.beyond),
      })),
    )
  }

  queues(): QueueCounts[] {
    return this.#waits ? [{ policy: this.policy, ...this.#waited, histogram: this.#waits.read() }] : []
  }

  abused(): AbuseCounts[] {
    const { strikes, bans, blocks, unblocks } = this.abuse
    return strikes + bans + blocks + unblocks > 0 ? [{ policy: this.policy, ...this.abuse }] : []
  }
}

/** The counts of one tier of a policy, by its limits. Limits of two tiers may share a name. */
export class TierCounts {
  readonly policy: string
  readonly tier: string
  /** Decisions by the limit that refuses; '' where no limit refuses. */
  readonly #byLimit = new Map([['', new Float64Array(ROWS)]])
  /** By the policy and the name of a limit. */
  readonly #uses = new Map<string, LimitUseCounts>()
  /** The last decision's plan. */
  #plan: ReadablePlan | undefined
  #usesOfPlan: readonly LimitUseCounts[] = []

  constructor(policy: string, tier: string) {
    this.policy = policy
    this.tier = tier
  }

  /** `limit`: the one that refuses; '' for none. */
  decided(limit: string, outcome: DecisionOutcome, source: DecisionSource, reported: boolean): void {
    const at = (OUTCOMES.indexOf(outcome) * SOURCES.length + SOURCES.indexOf(source)) * 2 + (reported ? 1 : 0)
    const rows = this.#byLimit.get(limit) ?? this.#rowsOf(limit)
    ;(rows[at] as number)++
  }

  /** The share of each limit of a plan that is needed, in its order. */
  usesOf(plan: ReadablePlan): readonly LimitUseCounts[] {
    // Nearly always that of the decision before.
    if (plan !== this.#plan) {
      this.#plan = plan
      this.#usesOfPlan = plan.resolved.map(({ name, capacity }, i) => {
        const uses = this.#useOf(name, plan.definitions[i]?.policy)
        uses.startWith(boundsLower(plan, i) ? capacity : 0)
        return uses
      })
    }
    return this.#usesOfPlan
  }

  decisions(): DecisionCount[] {
    const counted: DecisionCount[] = []
    // Nearly all of them are 0, and figures are read each second.
    for (const [limit, rows] of this.#byLimit) {
      for (let at = 0; at < ROWS; at++) {
        const count = rows[at] as number
        if (count > 0) counted.push({ ...this.#rowAt(limit, at), count })
      }
    }
    return counted
  }

  uses(): Omit<UseCounts, 'refusedElsewhere'>[] {
    return [...this.#uses.values()].map((uses) => uses.read(this.policy, this.tier))
  }

  /** @param policy that of a document, with its tier: two tiers of it may each have a limit of this name */
  #useOf(limit: string, policy = this.tier === '' ? this.policy : `${this.policy}.${this.tier}`): LimitUseCounts {
    const key = `${policy}|${limit}`
    const hasRoom = this.#uses.has(key) || this.#uses.size < MAX_LIMITS
    if (hasRoom) return getOrInsert(this.#uses, key, () => new LimitUseCounts(policy, limit))
    return getOrInsert(this.#uses, OTHER, () => new LimitUseCounts(this.policy, OTHER))
  }

  #rowAt(limit: string, at: number): Omit<DecisionCount, 'count'> {
    const row = at >> 1
    return {
      policy: this.policy,
      tier: this.tier,
      limit,
      outcome: OUTCOMES[Math.floor(row / SOURCES.length)] as DecisionOutcome,
      source: SOURCES[row % SOURCES.length] as DecisionSource,
      reported: at % 2 === 1,
    }
  }

  #rowsOf(limit: string): Float64Array {
    // One beside the limits, for decisions that no limit refuses.
    const name = this.#byLimit.size <= MAX_LIMITS ? limit : OTHER
    return getOrInsert(this.#byLimit, name, () => new Float64Array(ROWS))
  }
}

/** Whether a count of units decided so, and not a list or a block, which would refuse under any limit. */
function isByCounts({ outcome, source }: DecisionCount): boolean {
  return !['admitted', 'left', 'denied', 'blocked'].includes(outcome) && source !== 'response'
}

function sumOf(rows: readonly DecisionCount[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0)
}
