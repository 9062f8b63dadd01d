import type { Limit, Store, Verdict } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import { decisionIn, planNow, policyOf, type ReadablePlan } from '@sluice/core/internal'
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

/** How many requests and clients a limit would refuse, and of how many. */
interface Tried {
  readonly limit: number
  readonly requestsRefused: number
  readonly clientsRefused: number
  readonly requests: number
  readonly clients: number
}

/** The report of candidates, with the lowest one by which few clients are refused. */
export function tradeOffOf(counts: readonly Tried[], sample: number): TradeOff {
  const candidates = counts.map(({ limit, requestsRefused, clientsRefused, requests, clients }) => ({
    limit,
    requestsRefused: requestsRefused / Math.max(1, requests),
    clientsRefused: clientsRefused / Math.max(1, clients),
  }))
  return { candidates, suggested: candidates.find(({ clientsRefused }) => clientsRefused < FEW)?.limit, sample }
}

/**
 * A limit of another number in place of that of a policy: decides on the same requests, with states of its own. For policies
 * whose decisions follow from the requests alone.
 */
export class Candidate {
  readonly limit: number
  /** By the client's place in the sample. */
  readonly refusals: number[] = []
  readonly #key: string
  readonly #amounts: string
  readonly #made: Limit
  readonly #store: Store & { decide(request: object, now: number): StoreResult }
  readonly #plans = new WeakMap<ReadablePlan, ReadablePlan>()
  #now = 0
  #lastPlan: ReadablePlan | undefined
  #last: ReadablePlan | undefined

  /** `of`: the limit that it replaces. `made`: the same with another number. */
  constructor(limit: number, of: Limit, made: Limit) {
    this.limit = limit
    this.#key = `${of.policy}\n${of.name}`
    this.#amounts = amountsOf(of)
    this.#made = made
    this.#store = memoryStore({ clock: () => this.#now, maxKeys: 60_000_000, maxBytes: 8 * 2 ** 30 }) as never
  }

  /** Decides on a request that was decided on with the limit of the policy, and returns whether it is refused. */
  decide(verdict: Verdict, now: number): boolean {
    const { request } = decisionIn(verdict)
    const given = request.plan as ReadablePlan
    const plan = planNow(this.#planFor(given), { clock: () => now })
    const costs = request.costs === given.ones ? plan.ones : costsFor(plan, given, request.costs)
    const { op, identities } = request
    this.#now = now
    return !this.#store.decide({ op, plan, identities, costs, permitId: '', fresh: false }, now).allowed
  }

  refused(place: number): void {
    this.refusals[place] = (this.refusals[place] ?? 0) + 1
  }

  #planFor(plan: ReadablePlan): ReadablePlan {
    if (plan === this.#lastPlan) return this.#last as ReadablePlan
    let own = this.#plans.get(plan)
    if (!own) {
      const limits = plan.definitions.map((limit) => (this.#replaces(limit) ? this.#made : limit))
      own = policyOf<never>({ name: plan.policy, limits: limits as never, key: limits[0]?.key as never }).plan(
        undefined as never,
        undefined as never,
      ) as ReadablePlan
      this.#plans.set(plan, own)
    }
    this.#lastPlan = plan
    this.#last = own
    return own
  }

  /** Overrides have numbers of their own, and keep them. */
  #replaces(limit: Limit): boolean {
    return `${limit.policy}\n${limit.name}` === this.#key && amountsOf(limit) === this.#amounts
  }
}

function amountsOf({ resolve, limit, window }: Limit): string {
  return resolve('', Number(limit), Number(window)).params.join()
}

/** Units per cell of `plan`, given those of a plan of the same limits, whose cells may be others. */
function costsFor({ cells, cellOf }: ReadablePlan, given: ReadablePlan, costs: readonly number[]): readonly number[] {
  return cells.map((_, c) => costs[given.cellOf[cellOf.indexOf(c)] as number] as number)
}
