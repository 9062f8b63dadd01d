import type { MemoryBase } from '../../memory/base.js'
import type { MemoryLayer } from '../../memory/layer.js'
import { isDecision, type KeptCharge, PEEK, type Plan, type StoreRequest, type StoreResult } from '../../store/store.js'
import { KeptRecords } from './memory-charges.js'

/** The layer of charges that are changed by their ids: keeps admitted ones, and changes them as far as their records say. */
export class MemoryChargeLayer implements MemoryLayer {
  #records: KeptRecords
  readonly #base: MemoryBase
  readonly #next: MemoryLayer

  constructor(base: MemoryBase, next: MemoryLayer) {
    this.#base = base
    this.#next = next
    this.#records = new KeptRecords(base.states)
    base.swept.push(() => this.#records)
  }

  decide(request: StoreRequest, now: number): StoreResult {
    return request.keep ? this.#chargeKept(request, now) : this.#next.decide(request, now)
  }

  #chargeKept(request: StoreRequest, now: number): StoreResult {
    const { op } = request
    if (isDecision(op)) {
      const result = this.#next.decide({ ...request, keep: undefined }, now)
      if (!result.allowed || op === PEEK) return result
      return { ...result, id: this.#records.keep(request, result) }
    }
    const { outcome, taken } = this.#records.take(request, now)
    const costs = request.costs.map((cost, c) => (taken[c] ? cost : 0))
    const result = this.#next.decide({ ...request, costs, keep: undefined }, now)
    return { ...result, outcome: result.outcome ?? outcome }
  }

  find(policy: string, id: string): readonly KeptCharge[] {
    const charge = this.#records.find(policy, id, this.#base.now())
    return charge ? [charge] : []
  }

  reset(plan: Plan, identities: readonly string[]): void {
    this.#next.reset(plan, identities)
    if (plan.keeps) this.#records.reset(plan.policy, identities)
  }

  forget(identity: string): void {
    this.#records.reset(undefined, [identity])
  }

  clear(): void {
    this.#records = new KeptRecords(this.#base.states)
  }
}
