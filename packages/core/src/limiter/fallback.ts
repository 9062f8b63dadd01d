import { monotonicClock } from '../memory/clock.js'
import { cappedCosts, withReserved } from '../policy/costs.js'
import type { ReadablePlan } from '../policy/plan.js'
import { planShare, reservedShare } from '../policy/share.js'
import type { Plan, Store, StoreRequest, StoreResult } from '../store/store.js'
import { clockOf, isImpossible, OWN_COUNTS, resultOf } from '../store/store.js'
import { invalidPolicy, neverBeside, SluiceError } from '../util/errors.js'
import { getOrInsert } from '../util/get-or-insert.js'
import { FORMS, type Use } from '../util/option-hints.js'
import { knownOptions, oneOf } from '../util/validate.js'
import { type DecidedBy, decisionOn } from '../verdict/decision.js'
import { type Verdict, verdictOf } from '../verdict/verdict.js'
import { LastKnown, type LocalStore } from './last-known.js'

/** The decisions while the store cannot be reached. */
export interface UnavailableOption {
  /**
   * `local` applies the same limits in this process.
   *
   * It starts from the store's last results for clients that had used more than half of a limit. `allow` admits and
   * `deny` refuses every request. Such verdicts are of kind `unavailable`.
   * @default 'local'
   */
  readonly decide?: 'local' | 'allow' | 'deny'
  /**
   * With `local`: the share of the limits that this process applies, above 0 up to 1.
   *
   * At 1 / the number of processes, all processes together admit no more than the limits. Rounded down, but each limit
   * is at least 1.
   * @default 1
   */
  readonly share?: number
}

export interface UnavailableOptions {
  /** The decisions while the store cannot be reached: `{ decide: 'deny' }`, `{ share: 0.25 }`. @default this process, by the whole limits */
  readonly unavailable?: UnavailableOption | Use<typeof FORMS.unavailable, UnavailableOption>
}

export const UNAVAILABLE_OPTIONS = ['unavailable'] as const

/** Makes a store of this process. `clock`: that of the store in whose place it decides, if it has one. */
export type MakeStore = (clock: (() => number) | undefined) => Store

/** The wait in ms that clients get while no limit decides. A store that recovers meanwhile is in use by then. */
const TRY_AGAIN_MS = 2000

/** Decides during an outage of the store: by a memory store of this process, or by the fixed verdict of `unavailable`. */
export class LocalFallback {
  readonly #mode: 'local' | 'allow' | 'deny'
  readonly #share: number
  readonly #store: Store
  readonly #makeLocal: MakeStore
  readonly #plans = new WeakMap<Plan, ReadablePlan>()
  #beside: Local | undefined

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(ofPolicy: string, store: Store, { unavailable = {} }: UnavailableOptions, makeLocal: MakeStore) {
    const where = `${ofPolicy}: unavailable`
    knownOptions(where, unavailable, ['decide', 'share'], {}, FORMS.unavailable)
    const { decide = 'local', share } = unavailable
    this.#mode = oneOf(where, 'decide', decide, ['local', 'allow', 'deny'])
    if (share !== undefined && this.#mode !== 'local') neverBeside(where, 'share', `decide "${this.#mode}"`, share)
    if (share !== undefined && !(typeof share === 'number' && share > 0 && share <= 1)) {
      invalidPolicy(where, 'share', 'a number above 0, up to 1', share)
    }
    this.#share = share ?? 1
    this.#store = store
    this.#makeLocal = makeLocal
  }

  /** The store of this process for outages, if there was any outage so far. */
  get local(): Store | undefined {
    return locals.get(this.#store)?.store
  }

  /** The store of this process that decides during an outage. Undefined if the verdict is a fixed one. */
  get deciding(): Store | undefined {
    return this.#mode === 'local' ? this.#local.store : undefined
  }

  /** Records a result of the store. Call it with each: during an outage, counting continues from there. */
  record(request: StoreRequest, result: StoreResult): void {
    if (this.#mode === 'local') this.#local.known.record(request, result)
  }

  /** The verdict on a request that the store did not decide. */
  decide(request: StoreRequest, from: DecidedBy): Verdict {
    if (this.#mode !== 'local') return undecided(request, from, this.#mode === 'allow')
    const { store, known } = this.#local
    const plan = this.#planOf(request.plan as ReadablePlan)
    const counted = this.#store[OWN_COUNTS]?.lastKnown(request)
    if (counted) known.record(request, counted)
    known.charge(store as unknown as LocalStore, request, (each) => this.#planOf(each as ReadablePlan))
    if (plan === request.plan) return decideLocally(store, request, { ...from, kind: 'unavailable', store })
    const reserved = from.reserved && reservedShare(plan, from.reserved, this.#share)
    // A step of a meter is no estimate.
    const costs = from.isOfResponse ? request.costs : cappedCosts(plan, request.costs, reserved)
    const needs = request.needs && withReserved(costs, request.needs, reserved)
    const local: StoreRequest = { ...request, plan, costs, needs }
    // The cost exceeds only this share: `impossible` would be wrong, as the whole limit can hold it.
    if (isImpossible(local) && !isImpossible(request)) return undecided(request, from, false)
    return decideLocally(store, local, { ...from, kind: 'unavailable', store, reserved })
  }

  /** Forgets the charges of this process during an outage. */
  reset(plan: ReadablePlan, identities: readonly string[]): void {
    const local = locals.get(this.#store)
    local?.known.forget(plan, identities)
    void local?.store.reset(this.#planOf(plan), identities)
  }

  get #local(): Local {
    this.#beside ??= localBeside(this.#store, this.#makeLocal)
    return this.#beside
  }

  #planOf(plan: ReadablePlan): ReadablePlan {
    if (this.#share === 1) return plan
    return getOrInsert(this.#plans, plan, () => planShare(plan, this.#share))
  }
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof SluiceError && error.code === 'STORE_UNAVAILABLE'
}

interface Local {
  readonly store: Store
  readonly known: LastKnown
}

const locals = new WeakMap<Store, Local>()

/**
 * The memory store and the known results for all limiters on a store, as limiters of one name share their state.
 * It remains after the outage until its states expire: a store that fails repeatedly must not grant a fresh quota each time.
 */
function localBeside(store: Store, makeLocal: MakeStore): Local {
  let local = locals.get(store)
  if (!local) {
    const storeClock = clockOf(store)
    const known = new LastKnown(storeClock ?? monotonicClock(), storeClock !== undefined)
    local = { store: makeLocal(storeClock), known }
    locals.set(store, local)
  }
  return local
}

function decideLocally(store: Store, request: StoreRequest, from: DecidedBy): Verdict {
  return verdictOf(decisionOn(request, store.decide(request) as StoreResult, from))
}

function undecided(request: StoreRequest, from: DecidedBy, allowed: boolean): Verdict {
  const result = resultOf(0, allowed, [], 0)
  const by: DecidedBy = { ...from, kind: 'unavailable', store: undefined, tryAgainMs: allowed ? 0 : TRY_AGAIN_MS }
  return verdictOf(decisionOn(request, result, by))
}
