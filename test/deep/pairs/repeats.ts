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
  readonly #blocks = new Map<string, { readonly until: number; readonly at: number }>()
  /** What processes have done, in order. */
  readonly #done: { readonly process: number; readonly makesRoom: boolean }[] = []

  constructor({ denyCache = false }: Case) {
    this.#hasCache = denyCache
  }

  /** A process has refused a request by its limits. `costs`: those of its limits, as text. */
  note(process: number, policy: PolicyOf, by: Request, costs: string, at: number): void {
    // Redis always decides then: docs/limitations.md, Redis.
    const { onDeny, count, consistency, ban } = policy
    if (!this.#hasCache || onDeny || count || consistency || ban) return
    this.#refusals.push({ process, policy, by, costs, at, after: this.#done.length })
  }

  did(process: number, makesRoom: boolean): void {
    this.#done.push({ process, makesRoom })
  }

  /**
   * A change by a process takes effect in it at once, but for the numbers of limits on other keys than those that refused:
   * docs/guarantees.md, The deny cache.
   */
  drop(process: number, isChanged: (refusal: Pick<Refusal, 'policy' | 'by'>) => boolean): void {
    this.#refusals = this.#refusals.filter(
      (refusal) => refusal.process !== process || hasOtherKeys(refusal.policy) || !isChanged(refusal),
    )
  }

  /** A process has refused a client by a block or a ban. */
  noteBlock(process: number, client: string, until: number, at: number): void {
    if (this.#hasCache) this.#blocks.set(`${process} ${client}`, { until, at })
  }

  dropBlock(process: number, client: string): void {
    this.#blocks.delete(`${process} ${client}`)
  }

  /** Whether a process may refuse by a block that another one has ended or replaced since. */
  mayRepeatBlock(process: number, client: string, until: number, now: number): boolean {
    const block = this.#blocks.get(`${process} ${client}`)
    return block !== undefined && block.until !== until && now < Math.min(block.until, block.at + REPEATED_MS)
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
    return {
      makesRoom: ofOthers.some(({ makesRoom }) => makesRoom),
      changes:
        alike.length > 0 && (ofOthers.length > 0 || hasOtherKeys(policy) || alike.some((each) => each.costs !== costs)),
    }
  }
}

function hasOtherKeys(policy: PolicyOf): boolean {
  return limitsOf(policy).some(({ key }) => key !== undefined)
}

/** Whether a policy counts two requests alike. */
export function areAlike(policy: PolicyOf, one: Request, other: Request): boolean {
  const isByTenant = limitsOf(policy).some(({ key }) => key === 'tenant')
  if (one.client !== other.client || (isByTenant && one.tenant !== other.tenant)) return false
  return policy.tiers === undefined || one.tier === other.tier
}
