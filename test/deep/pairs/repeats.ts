import { type Case, limitsOf, type PolicyOf, type Request, unitsOf } from './case.js'

/** A process repeats a refusal for at most so long: docs/guarantees.md, The deny cache. */
const REPEATED_MS = 1000

interface Refusal {
  readonly process: number
  readonly policy: PolicyOf
  readonly by: Request
  readonly costs: string
  readonly at: number
  /** What other processes had done by then. */
  readonly after: number
}

/** The refusals that the deny caches of processes may repeat. */
export class Repeats {
  readonly #hasCache: boolean
  #refusals: Refusal[] = []
  /** What processes have done, in order. */
  readonly #done: { readonly process: number; readonly makesRoom: boolean }[] = []

  constructor({ denyCache = false }: Case) {
    this.#hasCache = denyCache
  }

  /** A process has refused a request. `costs`: those of its limits, as text. */
  note(process: number, policy: PolicyOf, by: Request, costs: string, isByLimits: boolean, at: number): void {
    // Redis always decides then: docs/limitations.md, Redis.
    const { onDeny, count, consistency, ban } = policy
    if (!this.#hasCache || onDeny || count || consistency || (ban && isByLimits)) return
    this.#refusals.push({ process, policy, by, costs, at, after: this.#done.length })
  }

  did(process: number, makesRoom: boolean): void {
    this.#done.push({ process, makesRoom })
  }

  /** A change by a process takes effect in it at once: docs/guarantees.md, The deny cache. */
  drop(process: number, isChanged: (refusal: Pick<Refusal, 'policy' | 'by'>) => boolean): void {
    this.#refusals = this.#refusals.filter((refusal) => refusal.process !== process || !isChanged(refusal))
  }

  /**
   * Whether a process may repeat a refusal, as of `makesRoom`: although there is room, as another process has made it; as of
   * `changes`: with the numbers of then.
   */
  find(process: number, policy: PolicyOf, by: Request, costs: string, now: number) {
    const alike = this.#refusals.filter(
      (refusal) =>
        refusal.process === process &&
        refusal.policy === policy &&
        now < refusal.at + REPEATED_MS &&
        areAlike(policy, refusal.by, by) &&
        // Of units of your own, also for higher costs: docs/units.md, Waiting, leases and Redis.
        (refusal.costs === costs || unitsOf(policy).length > 0),
    )
    const since = this.#done.slice(Math.min(...alike.map(({ after }) => after), this.#done.length))
    const ofOthers = since.filter((each) => each.process !== process)
    const hasOtherKeys = limitsOf(policy).some(({ key }) => key !== undefined)
    return {
      makesRoom: ofOthers.some(({ makesRoom }) => makesRoom),
      changes: alike.length > 0 && (ofOthers.length > 0 || hasOtherKeys || alike.some((each) => each.costs !== costs)),
    }
  }
}

/** Whether a policy counts two requests alike. */
export function areAlike(policy: PolicyOf, one: Request, other: Request): boolean {
  const isByTenant = limitsOf(policy).some(({ key }) => key === 'tenant')
  if (one.client !== other.client || (isByTenant && one.tenant !== other.tenant)) return false
  return policy.tiers === undefined || one.tier === other.tier
}
