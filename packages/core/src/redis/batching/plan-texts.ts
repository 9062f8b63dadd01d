import type { KernelName, Plan } from '../../store/store.js'
import { type PlanText, planText } from '../scripts/encode.js'

/** What decisions have asked of Redis so far. */
export class Asked {
  /** The kinds of their cells. */
  readonly kinds = new Set<KernelName>()
  /** Whether they may ban. */
  bans = false
}

export interface PlanTextsOptions {
  readonly marker: string | undefined
  /** What this adds to. */
  readonly asked: Asked
  /** Whether this process knows the blocks from every policy, so that decisions need not look for them. */
  readonly knowsBlocks: () => boolean
}

/** What scripts are sent of plans, worked out once for each. */
export class PlanTexts {
  readonly #options: PlanTextsOptions
  readonly #texts = new WeakMap<Plan, PlanText>()
  /** The same with the block keys of every policy. */
  readonly #widerTexts = new WeakMap<Plan, PlanText>()
  #enforcesBans = false

  constructor(options: PlanTextsOptions) {
    this.#options = options
  }

  readonly of = (plan: Plan): PlanText => {
    const isWider = this.bringsKeysOfEveryPolicy
    const texts = isWider ? this.#widerTexts : this.#texts
    let text = texts.get(plan)
    if (!text) {
      const { marker, asked } = this.#options
      text = planText(plan, marker, isWider)
      texts.set(plan, text)
      for (const cell of plan.cells) asked.kinds.add(cell.kernel)
      if (plan.ban) asked.bans = true
    }
    return text
  }

  /** From now on decisions bring the block keys of every policy, where they bring block keys. */
  enforceBansOfEveryPolicy(): void {
    this.#enforcesBans = true
  }

  /** Whether decisions that bring block keys bring those of every policy. */
  get bringsKeysOfEveryPolicy(): boolean {
    return this.#enforcesBans || !this.#options.knowsBlocks()
  }
}
