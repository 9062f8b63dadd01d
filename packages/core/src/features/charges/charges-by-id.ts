import { releasing, renewing, settling, unitOf } from '../../limiter/charge-changes.js'
import type { ChangeOfKept, ChargeLedger } from '../../limiter/charge-ledger.js'
import type { LimiterInside } from '../../limiter/limiter.js'
import { actualUnits, type Counting, type Units } from '../../policy/costs.js'
import { entriesIn } from '../../policy/given-identities.js'
import type { ReadablePlan } from '../../policy/plan.js'
import {
  type ChargeOutcome,
  KEPT_CHARGES,
  type KeptCharge,
  type Plan,
  type QuotaUnit,
  type Store,
  type StoreRequest,
} from '../../store/store.js'
import { isOwnUnit } from '../../store/units.js'
import { idsIn } from '../../util/charge-id.js'
import { invalidPolicy } from '../../util/errors.js'
import type { PartKey } from '../../util/parts.js'
import { checkActualCost } from '../../verdict/decision.js'

/** The policy that counts kept charges. */
type Keeping = Counting & { readonly name: string }

/**
 * Changes charges of any process by their ids. Stores keep what a charge took, a part for each slot of a cluster. The script that
 * changes the part also marks it, so that each cell is changed once, whoever asks for it, and a retry does what is missing.
 *
 * An id may name the charges of several policies of a request. They are changed as one charge: all are read and checked first.
 */
export class KeptCharges {
  readonly #policy: Keeping
  readonly #stores: readonly (() => Store | undefined)[]
  readonly #ledger: Pick<ChargeLedger, 'changeKept'>

  /** `stores`: those that may have kept a charge, in this order: this process alone during an outage, and the limiter's own. */
  constructor(policy: Keeping, stores: readonly (() => Store | undefined)[], ledger: Pick<ChargeLedger, 'changeKept'>) {
    this.#policy = policy
    this.#stores = stores
    this.#ledger = ledger
  }

  /** @throws SluiceError `INVALID_COST`, `STORE_UNAVAILABLE` */
  async settle(id: string, actual: number | Units): Promise<ChargeOutcome> {
    const units = entriesIn(actual)
    const named = units && actualUnits(this.#policy, units)
    return this.#change(id, (parts) => {
      const settled = named ?? new Map([['requests', checkActualCost(this.#policy.where, actual, maxToSettle(parts))]])
      return (part) => settling(part, (unit) => settled.get(unit), named !== undefined)
    })
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  refund(id: string): Promise<ChargeOutcome> {
    return this.#change(id, () => (part) => settling(part, () => 0, false))
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  release(id: string): Promise<ChargeOutcome> {
    return this.#change(id, () => releasing)
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  renew(id: string): Promise<ChargeOutcome> {
    return this.#change(id, () => renewing)
  }

  /** `changeFor`: checks the change against all parts of the charges, before the first is made. */
  async #change(id: string, changeFor: (parts: readonly KeptCharge[]) => ChangeOfPart): Promise<ChargeOutcome> {
    const found = (await Promise.all(idsIn(id).map((each) => this.#find(each)))).flat()
    if (found.length === 0) return 'unknown'
    const change = changeFor(found.map(({ part }) => part))
    return this.#ledger.changeKept(
      found.flatMap(({ store, part }) => change(part).map((request): ChangeOfKept => ({ store, request }))),
    )
  }

  async #find(id: string): Promise<readonly KeptPart[]> {
    for (const storeOf of this.#stores) {
      const store = storeOf()
      const parts = (await store?.[KEPT_CHARGES]?.find(this.#policy.name, id)) ?? []
      if (store && parts.length > 0) return parts.map((part) => ({ store, part: readable(part) }))
    }
    return []
  }
}

/** The changes by id of an engine whose policy keeps charges. */
export const BY_ID: PartKey<KeptCharges> = { name: 'charges' }

/** @throws SluiceError `INVALID_POLICY` where the policy keeps none */
export function chargesById<Subject>({ engine }: LimiterInside<Subject>): KeptCharges {
  const { parts, policy } = engine
  return parts.get(BY_ID) ?? invalidPolicy(policy.where, 'id', 'none without charges', 'an id', 'add charges: { keep }')
}

/** A part of a charge, and the store that keeps it. */
interface KeptPart {
  readonly store: Store
  readonly part: KeptCharge
}

type ChangeOfPart = (part: KeptCharge) => readonly StoreRequest[]

/** The most requests that a number may settle: as of a verdict. */
function maxToSettle(parts: readonly KeptCharge[]): number {
  const charged = parts.flatMap(({ request: { plan, costs } }) =>
    plan.cells.map((cell, c): [QuotaUnit, number] => [unitOf(cell), costs[c] as number]),
  )
  const requests = charged.filter(([unit]) => unit === 'requests')
  return Math.max(...(requests.length > 0 ? requests : [['', 1] as const, ...charged]).map(([, units]) => units))
}

const readablePlans = new WeakMap<Plan, Plan>()

/** A part whose plan has what limiters read of it, also if another process has made the charge. */
function readable(part: KeptCharge): KeptCharge {
  const { plan } = part.request
  if ('cellOf' in plan) return part
  let whole = readablePlans.get(plan)
  if (!whole) {
    const units = plan.cells.map(unitOf)
    const takesOnes = !units.some(isOwnUnit)
    const recordedPlan: Plan & Pick<ReadablePlan, 'resolved' | 'cellOf' | 'units' | 'takesOnes'> = {
      ...plan,
      resolved: plan.cells.flatMap(({ limits }) => limits),
      cellOf: plan.cells.map((_, c) => c),
      units,
      takesOnes,
    }
    whole = Object.freeze(recordedPlan)
    readablePlans.set(plan, whole)
  }
  return { ...part, request: { ...part.request, plan: whole } }
}
