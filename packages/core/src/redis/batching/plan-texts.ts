import type { KernelName, Plan } from '../../store/store.js'
import { type PlanText, planText } from '../scripts/encode.js'

/** The features of scripts that decisions have used so far. */
export class UsedFeatures {
  /** The kinds of the decisions' cells. */
  readonly kinds = new Set<KernelName>()
  /** Whether decisions may ban. */
  bans = false
}

export interface PlanTextsOptions {
  readonly marker: string | undefined
  /** The features used so far, which this class adds to. */
  readonly used: UsedFeatures
  /** Those of every policy that this process knows. While it knows all, decisions need not check for them. */
  readonly blocks: { readonly isWhole: boolean }
}

/** The encoded texts of plans, computed once per plan. */
export class PlanTexts {
  readonly #options: PlanTextsOptions
  /** Each without and with the block keys of every policy. */
  readonly #texts = new WeakMap<Plan, readonly [own: PlanText, wider: PlanText]>()
  #enforcesBans = false

  constructor(options: PlanTextsOptions) {
    this.#options = options
  }

  readonly of = (plan: Plan): PlanText => {
    let both = this.#texts.get(plan)
    if (!both) {
      const { marker, used } = this.#options
      // Both at once: V8 drops optimized code that comes to a part which has never run, here once the index is known.
      both = [planText(plan, marker), planText(plan, marker, true)]
      this.#texts.set(plan, both)
      for (const cell of plan.cells) used.kinds.add(cell.kernel)
      if (plan.ban) used.bans = true
    }
    return both[this.bringsKeysOfEveryPolicy ? 1 : 0]
  }

  /** From now on, decisions that include block keys include those of every policy. */
  enforceBansOfEveryPolicy(): void {
    this.#enforcesBans = true
  }

  /** Whether decisions that include block keys include those of every policy. */
  get bringsKeysOfEveryPolicy(): boolean {
    return this.#enforcesBans || !this.#options.blocks.isWhole
  }
}
