import type { Engine } from '../../limiter/engine.js'
import { type DecisionOptions, NO_OPTIONS } from '../../limiter/options.js'
import type { ReadablePlan } from '../../policy/plan.js'
import { wholeOf } from '../../policy/share.js'
import type { StoreRequest } from '../../store/store.js'
import type { PartKey } from '../../util/parts.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { BookedTurns } from './booked-turns.js'
import { queuesOn } from './queues-on-store.js'
import { queuesOf, RequestWaiter, type Resolver } from './request-waiter.js'
import type { OnChange, WaitQueues } from './wait-queue.js'
import type { WaitOptions } from './waiter.js'
import { Waiting } from './waiting.js'

/** The queues of a limiter: its requests and calls wait in those of all limiters of its policy on its store. */
export class LimiterQueues<Subject> {
  readonly queues: WaitQueues
  /** The turns that queueing limits have booked. */
  readonly booked: BookedTurns
  readonly #engine: Engine<Subject>

  constructor(engine: Engine<Subject>) {
    this.#engine = engine
    this.queues = queuesOn(engine.store, engine.policy.name, engine.timing)
    this.booked = new BookedTurns(engine.timing)
  }

  /** Waits in the queues of the resolved limits until admitted. The caller still waits for `delayMs` of a queueing limit. */
  async waitTurn(
    resolve: Resolver<Subject>,
    wait: WaitOptions,
    options: DecisionOptions = NO_OPTIONS,
  ): Promise<Verdict> {
    const { leave, changes } = this.queues.enter()
    try {
      const first = await resolve()
      const waiter = new RequestWaiter(this.#engine, this.booked, first, resolve, wait, options)
      const headStartMs = wait.headStartMs ?? first.priority * (wait.ageEveryMs ?? 0)
      // By a change of the policies, or of its tier, other limits than those that refused it may be in force.
      const refusal = wait.refusal?.[DECISION].by.policy === first.policy ? wait.refusal : undefined
      const turn = turnBy(wait, headStartMs, refusal)
      return await new Waiting(this.queues, this.#engine.policy.where, waiter, turn, changes).admission()
    } finally {
      leave()
    }
  }

  /** Whether any request waits in this process. */
  get areAny(): boolean {
    return this.queues.size > 0
  }

  /** Whether other requests wait for one of these limits in this process. */
  hasWaitersFor(plan: ReadablePlan, identities: readonly string[]): boolean {
    const queues = queuesOf(plan, identities)
    return this.queues.hasAny(queues) || this.queues.areFollowing(queues)
  }

  /** Waiting requests follow these changes of the policies. */
  follow(changes: OnChange): void {
    this.queues.follow(changes)
  }

  /** Wakes the waiters of the limits of a request, as these may have room again; of none, all. */
  wake(request: StoreRequest | undefined): void {
    this.queues.wake(request && queuesOf(wholeOf(request.plan), request.identities))
  }
}

/** Each field by itself: for thousands that wait, copies of objects take most of the time. */
function turnBy(wait: WaitOptions, headStartMs: number, refusal: Verdict | undefined): WaitOptions {
  const { cost, maxWaitMs, signal, ageEveryMs, client, size, waitsForStore } = wait
  return { cost, maxWaitMs, signal, headStartMs, ageEveryMs, client, size, waitsForStore, refusal }
}

// biome-ignore lint/suspicious/noExplicitAny: of limiters for any subject
export const QUEUES: PartKey<LimiterQueues<any>> = { name: 'queues' }
