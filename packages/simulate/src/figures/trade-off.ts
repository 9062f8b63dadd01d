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
 * Decides on the requests of a log by limits that differ from those of the document, with states of its own. For policies whose
 * decisions follow from the requests alone.
 */
abstract class OtherLimits {
  readonly #store: Store & { decide(request: object, now: number): StoreResult }
  readonly #plans = new WeakMap<ReadablePlan, ReadablePlan | undefined>()
  #now = 0
  #lastPlan: ReadablePlan | undefined
  #last: ReadablePlan | undefined

  constructor() {
    this.#store = memoryStore({ clock: () => this.#now, maxKeys: 60_000_000, maxBytes: 8 * 2 ** 30 }) as never
  }

  /** Decides on a request that was decided on with the limits of the document, and returns whether it is refused. */
  decide(verdict: Verdict, now: number): boolean {
    const { request } = decisionIn(verdict)
    const given = request.plan as ReadablePlan
    const own = this.#planFor(given)
    if (!own) return false
    const plan = planNow(own, { clock: () => now })
    const isOfAll = plan.definitions.length === given.definitions.length
    const identities = isOfAll ? request.identities : identitiesFor(plan, given, request.identities)
    const costs = request.costs === given.ones ? plan.ones : costsFor(plan, given, request.costs)
    this.#now = now
    const { op } = request
    return !this.#store.decide({ op, plan, identities, costs, permitId: '', fresh: false }, now).allowed
  }

  /** What decides in place of a limit: undefined for nothing. */
  protected abstract replacementOf(limit: Limit): Limit | undefined

  #planFor(plan: ReadablePlan): ReadablePlan | undefined {
    if (plan === this.#lastPlan) return this.#last
    let own = this.#plans.get(plan)
    if (!own && !this.#plans.has(plan)) {
      const limits = plan.definitions.flatMap((limit) => this.replacementOf(limit) ?? [])
      if (limits.length > 0) {
        own = policyOf<never>({ name: plan.policy, limits: limits as never, key: limits[0]?.key as never }).plan(
          undefined as never,
          undefined as never,
        ) as ReadablePlan
      }
      this.#plans.set(plan, own)
    }
    this.#lastPlan = plan
    this.#last = own
    return own
  }
}

/** A limit of another number in place of that of a policy. */
export class Candidate extends OtherLimits {
  readonly limit: number
  /** Requests that it refuses and that other policies admit, by the client's place in the sample. */
  readonly refusals: number[] = []
  readonly #key: string
  readonly #amounts: string
  readonly #made: Limit

  /** `of`: the limit that it replaces. `made`: the same with another number. */
  constructor(limit: number, of: Limit, made: Limit) {
    super()
    this.limit = limit
    this.#key = `${of.policy}\n${of.name}`
    this.#amounts = amountsOf(of)
    this.#made = made
  }

  refused(place: number): void {
    this.refusals[place] = (this.refusals[place] ?? 0) + 1
  }

  protected override replacementOf(limit: Limit): Limit {
    return this.#replaces(limit) ? this.#made : limit
  }

  /** Overrides have numbers of their own, and keep them. */
  #replaces(limit: Limit): boolean {
    return `${limit.policy}\n${limit.name}` === this.#key && amountsOf(limit) === this.#amounts
  }
}

/** The limits of the policies beside one, which refuse some requests whatever its own limits are. */
export class LimitsBeside extends OtherLimits {
  readonly #isOwn: (limit: Limit) => boolean

  constructor(isOwn: (limit: Limit) => boolean) {
    super()
    this.#isOwn = isOwn
  }

  protected override replacementOf(limit: Limit): Limit | undefined {
    return this.#isOwn(limit) ? undefined : limit
  }
}

function amountsOf({ resolve, limit, window }: Limit): string {
  return resolve('', Number(limit), Number(window)).params.join()
}

/** Units per cell of `plan`, given those of a plan of the same limits and others, whose cells may be others. */
function costsFor(
  { cells, cellOf, definitions }: ReadablePlan,
  given: ReadablePlan,
  costs: readonly number[],
): readonly number[] {
  const isOfAll = definitions.length === given.definitions.length
  const placeOf = (at: number) => (isOfAll ? at : given.definitions.indexOf(definitions[at] as Limit))
  return cells.map((_, c) => costs[given.cellOf[placeOf(cellOf.indexOf(c))] as number] as number)
}

/** The identities of a plan of some of the limits. */
function identitiesFor(
  { starts }: ReadablePlan,
  given: ReadablePlan,
  identities: readonly string[],
): readonly string[] {
  return starts.map((start) => identities[given.starts.indexOf(start)] as string)
}
