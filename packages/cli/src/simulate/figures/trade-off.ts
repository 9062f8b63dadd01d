import type { Limit, Store, Verdict } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import { decisionIn, Policy, type ReadablePlan } from '@sluice/core/internal'
import type { StoreResult } from '@sluice/core/store'
import type { TradeOff } from '../report.js'

/** Steps of candidates above and below a limit: each is √2 times the one before. */
const STEPS = 8
/** The share of clients below which a candidate is suggested. */
const FEW = 0.001

/** The limits that are tried in place of one, in ascending order. */
export function candidatesFor(limit: number): number[] {
  const all = new Set<number>()
  for (let step = -STEPS; step <= STEPS; step++) all.add(Math.max(1, Math.round(limit * 2 ** (step / 2))))
  all.add(limit)
  // Small limits have fewer below them.
  for (let more = STEPS + 1; all.size < 2 * STEPS; more++) all.add(Math.round(Math.max(1, limit) * 2 ** (more / 2)))
  return [...all].sort((a, b) => a - b)
}

/** The report of candidates, with the lowest one by which few clients are refused. */
export function tradeOffOf(
  counts: readonly { readonly limit: number; readonly requestsRefused: number; readonly clientsRefused: number }[],
  requests: number,
  clients: number,
  sample: number,
): TradeOff {
  const candidates = counts.map(({ limit, requestsRefused, clientsRefused }) => ({
    limit,
    requestsRefused: requestsRefused / Math.max(1, requests),
    clientsRefused: clientsRefused / Math.max(1, clients),
  }))
  return { candidates, suggested: candidates.find(({ clientsRefused }) => clientsRefused < FEW)?.limit, sample }
}

/** Marks of clients by their row. */
class Marks {
  #bits = new Uint32Array(64)

  /** Returns whether it was not marked. */
  add(row: number): boolean {
    const word = row >>> 5
    if (word >= this.#bits.length) {
      const more = new Uint32Array(Math.max(word + 1, 2 * this.#bits.length))
      more.set(this.#bits)
      this.#bits = more
    }
    const bit = 1 << (row & 31)
    const before = this.#bits[word] as number
    this.#bits[word] = before | bit
    return (before & bit) === 0
  }
}

/** A limit of another number in place of that of a policy: decides on the same requests, with states of its own. */
export class Candidate {
  readonly limit: number
  requestsRefused = 0
  clientsRefused = 0
  readonly #key: string
  readonly #made: Limit
  readonly #store: Store & { decide(request: object, now: number): StoreResult }
  readonly #plans = new WeakMap<ReadablePlan, ReadablePlan>()
  readonly #refused = new Marks()
  #lastPlan: ReadablePlan | undefined
  #last: ReadablePlan | undefined

  /** `of`: the limit that it replaces. `made`: the same with another number. */
  constructor(limit: number, of: Limit, made: Limit) {
    this.limit = limit
    this.#key = `${of.policy}\n${of.name}`
    this.#made = made
    const now = 0
    this.#store = memoryStore({ clock: () => now, maxKeys: 60_000_000, maxBytes: 8 * 2 ** 30 }) as never
  }

  /** Decides on a request that was decided on with the limit of the policy, and returns whether it is refused. */
  decide(verdict: Verdict, now: number): boolean {
    const { request } = decisionIn(verdict)
    const given = request.plan as ReadablePlan
    const plan = this.#planFor(given)
    const costs = request.costs === given.ones ? plan.ones : costsFor(plan, given, request.costs)
    const { op, identities, values } = request
    return !this.#store.decide({ op, plan, identities, values, costs, permitId: '', fresh: false }, now).allowed
  }

  refused(row: number): void {
    if (this.#refused.add(row)) this.clientsRefused++
  }

  #planFor(plan: ReadablePlan): ReadablePlan {
    if (plan === this.#lastPlan) return this.#last as ReadablePlan
    let own = this.#plans.get(plan)
    if (!own) {
      const limits = plan.definitions.map((limit) =>
        `${limit.policy}\n${limit.name}` === this.#key ? this.#made : limit,
      )
      own = new Policy<never>({ name: plan.policy, limits: limits as never, key: limits[0]?.key as never }).plan(
        undefined as never,
        undefined as never,
      ) as ReadablePlan
      this.#plans.set(plan, own)
    }
    this.#lastPlan = plan
    this.#last = own
    return own
  }
}

/** Units per cell of `plan`, given those of a plan of the same limits, whose cells may be others. */
function costsFor({ cells, cellOf }: ReadablePlan, given: ReadablePlan, costs: readonly number[]): readonly number[] {
  return cells.map((_, c) => costs[given.cellOf[cellOf.indexOf(c)] as number] as number)
}
