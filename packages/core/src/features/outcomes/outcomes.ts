import { listenTo } from '../../http/response/shared-listener.js'
import { isOver, type RawResponse } from '../../request/context.js'
import type { Store } from '../../store/store.js'
import { arePermits } from '../../store/units.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { pause } from '../../util/pause.js'
import { PROCESS_TIMING, type Timing } from '../../util/timing.js'
import { type Decision, identitiesIn, isCharged, refusingIdentities } from '../../verdict/decision.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'

/** The open reservations on one identity, and the requests that wait for their outcomes. */
interface OutcomeQueue {
  inFlight: number
  /** In order of arrival, in which they are woken. */
  readonly waiters: Set<Waiter>
}

interface Waiter {
  isWoken: boolean
  /** Ends the waiter's pause. */
  resume?: () => void
}

function wake(waiter: Waiter): void {
  waiter.isWoken = true
  waiter.resume?.()
}

/** Interval, and below it duration, of the polls of a request that waits on a shared store. */
const POLL_MS = 50
const POLL_FOR_MS = 1000
/** Maximum of requests that wait on one identity; further ones are refused at once. */
const MAX_WAITING = 1000
/** Maximum of identities remembered as used up. */
const MAX_USED_UP = 10_000

/**
 * Reservations whose outcome is open: requests that are counted by outcome reserve their charge until they end. A request that
 * finds no room because of them waits, in this process, until they end. Then there is room, or the reservations have become
 * charges and the refusal is final.
 *
 * Limiters of one name on one store object share this. Reservations of other processes are not known here. Where the store is
 * shared, a refused request therefore polls for a second before it takes the limit as used up. Later requests take it so at
 * once.
 *
 * This is not a queue of `WaitQueues`, whose waiters request decisions one after the other until time makes room, up to `maxWait`:
 *
 * - Waiters here give up once no outcome is open, however much time is left.
 * - The last outcome decides for all of them, so they decide together. 1,000 decisions on Redis took some 150 ms one after the
 *   other, and 5 ms together.
 * - A request waits on each identity that refuses it, for the outcomes of several limiters.
 */
export class Outcomes {
  readonly #queues = new Map<string, OutcomeQueue>()
  /** The time until which an identity counts as used up, by the performance clock. */
  readonly #usedUp = new Map<string, number>()
  readonly #opened = new WeakMap<Decision, () => void>()
  readonly #timing: Timing

  private constructor(timing: Timing) {
    this.#timing = timing
  }

  /** `timing`: of all waits on this store. */
  static of(store: Store, policy: string, timing = PROCESS_TIMING): Outcomes {
    const byPolicy = getOrInsert(byStore, store, () => new Map<string, Outcomes>())
    return getOrInsert(byPolicy, policy, () => new Outcomes(timing))
  }

  /** Reserves the charge of an admitted request until the returned function is called. One charge has one such function. */
  open(verdict: Verdict): () => void {
    const decision = verdict[DECISION]
    return getOrInsert(this.#opened, decision, () => this.#open(decision))
  }

  #open(decision: Decision): () => void {
    const identities = identitiesIn(decision)
    for (const identity of identities) {
      this.#queueOf(identity).inFlight++
      this.#usedUp.delete(identity)
    }
    return () => {
      for (const identity of identities) {
        const queue = this.#queueOf(identity)
        queue.inFlight--
        // The last outcome decides for all waiters; earlier, refunded units go to the first waiter.
        if (queue.inFlight === 0) queue.waiters.forEach(wake)
        else this.#wakeFirst(identity)
        this.#forget(identity)
      }
    }
  }

  /** Whether the outcome of other requests may turn a refusal into an admission. */
  mayChange(verdict: Verdict, isShared: boolean): boolean {
    if (verdict.allowed || verdict.reason !== 'limited') return false
    // A request that is refused because too many are in flight must not count as in flight itself.
    if (verdict.limits.some(({ unit, allowed }) => !allowed && arePermits(unit))) return false
    const refusing = refusingIdentities(verdict[DECISION])
    // Where no limit refuses, the request waits for something other than room.
    if (refusing.length === 0) return false
    return refusing.every((identity) => {
      if ((this.#queues.get(identity)?.inFlight ?? 0) > 0) return true
      return isShared && !((this.#usedUp.get(identity) ?? 0) > this.#timing.now())
    })
  }

  /**
   * Waits up to `maxWaitMs` for outcomes, and calls `again` whenever one may have made room. Resolves to
   * the last verdict; to undefined when the client has left.
   */
  async wait(
    refusal: Verdict,
    again: () => Verdict | Promise<Verdict>,
    response: RawResponse,
    maxWaitMs: number,
    isShared: boolean,
  ): Promise<Verdict | undefined> {
    const startedAt = this.#timing.now()
    const waiter: Waiter = { isWoken: false }
    const ignoreClose = listenTo(response, 'close', () => wake(waiter))
    let verdict = refusal
    let joined: readonly string[] = []
    try {
      for (;;) {
        const refusing = refusingIdentities(verdict[DECISION])
        joined = this.#join(waiter, joined, refusing)
        if (joined.length < refusing.length) return verdict
        const waitedMs = this.#timing.now() - startedAt
        const isPolling = refusing.some((identity) => this.#queues.get(identity)?.inFlight === 0)
        const leftMs = (isPolling ? Math.min(POLL_FOR_MS, maxWaitMs) : maxWaitMs) - waitedMs
        if (leftMs <= 0) {
          if (isPolling) this.#believe(refusing, verdict.retryAfterMs as number)
          return verdict
        }
        if (!waiter.isWoken) {
          // Time makes room too. The first waiter polls for all.
          const isFirst = refusing.every((identity) => this.#first(identity) === waiter)
          const ms = Math.min(leftMs, verdict.retryAfterMs as number, isPolling && isFirst ? POLL_MS : leftMs)
          const onWaker = (resume: () => void) => {
            waiter.resume = resume
            return () => delete waiter.resume
          }
          await pause(Math.max(1, ms), undefined, onWaker, this.#timing)
        }
        waiter.isWoken = false
        if (isOver(response)) return undefined
        const result = again()
        verdict = result instanceof Promise ? await result : result
        if (verdict.allowed) {
          // Opened at once: the next waiter must see a request in flight.
          if (isCharged(verdict[DECISION])) this.open(verdict)
          return verdict
        }
        // Requests that ended since the decision may have made room.
        if (!waiter.isWoken && !this.mayChange(verdict, isShared)) return verdict
      }
    } finally {
      ignoreClose()
      this.#leave(waiter, joined)
    }
  }

  /** Joins the queues that it is not in yet, and retains its turn in the others. Returns its queues: fewer if one is full. */
  #join(waiter: Waiter, before: readonly string[], now: readonly string[]): readonly string[] {
    this.#leave(
      waiter,
      before.filter((identity) => !now.includes(identity)),
    )
    return now.filter((identity) => {
      const { waiters } = this.#queueOf(identity)
      if (!waiters.has(waiter) && waiters.size >= MAX_WAITING) {
        this.#forget(identity)
        return false
      }
      waiters.add(waiter)
      return true
    })
  }

  #leave(waiter: Waiter, identities: readonly string[]): void {
    for (const identity of identities) {
      this.#queues.get(identity)?.waiters.delete(waiter)
      // There may be room for another waiter.
      this.#wakeFirst(identity)
      this.#forget(identity)
    }
  }

  #believe(identities: readonly string[], forMs: number): void {
    if (this.#usedUp.size >= MAX_USED_UP) this.#usedUp.clear()
    for (const identity of identities) this.#usedUp.set(identity, this.#timing.now() + forMs)
  }

  #first(identity: string): Waiter | undefined {
    return this.#queues.get(identity)?.waiters.values().next().value
  }

  #wakeFirst(identity: string): void {
    const first = this.#first(identity)
    if (first) wake(first)
  }

  #queueOf(identity: string): OutcomeQueue {
    return getOrInsert(this.#queues, identity, (): OutcomeQueue => ({ inFlight: 0, waiters: new Set() }))
  }

  #forget(identity: string): void {
    const queue = this.#queues.get(identity)
    if (queue && queue.inFlight === 0 && queue.waiters.size === 0) this.#queues.delete(identity)
  }
}

const byStore = new WeakMap<Store, Map<string, Outcomes>>()
