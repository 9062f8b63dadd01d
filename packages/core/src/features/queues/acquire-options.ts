import { type Counting, checkedCost, type Units } from '../../policy/costs.js'
import { ageEveryMsOf, checkPriority } from '../../policy/priority.js'
import { type Duration, waitOrNever } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import type { WaitOptions } from './waiter.js'

export interface AcquireOptions {
  /** Units of requests, or units by name. Whole, 0 or more. @default 1 */
  readonly cost?: number | Units
  /** Maximum wait. @default no bound */
  readonly maxWait?: Duration
  /** Ends the wait; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal
  /**
   * The client, where several wait for one key: any non-empty text.
   *
   * Clients that wait for the same key are served in turn, by units, however many calls each of them has waiting. Calls
   * without it count as one client.
   * @default first in, first out
   */
  readonly fairBy?: string
  /** The class of this call, any finite number: higher goes first. `reserve` uses it too. @default by the policy's `priority`, else 0 */
  readonly priority?: number
  /**
   * Waiting for this long raises a call by one class, so that none starves.
   *
   * A call of class 2 counts as if it had been made twice this time earlier. `Infinity`: no call is raised, and a lower
   * class waits for as long as there are calls of a higher one.
   * @default '2s'
   */
  readonly ageEvery?: Duration
  /**
   * Maximum of calls that wait for one key in this process, this one included: whole, 1 or more.
   *
   * A call beyond it rejects with `WAIT_EXCEEDED`. With `fairBy`, a call of a client with fewer calls replaces the
   * newest call of the client that has the most, unless that is of a higher class.
   * @default 10_000
   */
  readonly size?: number
  /** The tier, for a key that is given as text to a limiter of requests. @default by the policy's `tier` */
  readonly tier?: string
}

const MAX_WAITERS = 10_000

const KNOWN = ['cost', 'maxWait', 'signal', 'fairBy', 'priority', 'ageEvery', 'size', 'tier']

/** The wait of a call, and what decides on its limits. */
export interface AcquireWait extends WaitOptions {
  readonly priority: number | undefined
  readonly tier: string | undefined
}

/** @throws SluiceError `INVALID_POLICY`, `INVALID_COST` */
export function acquireOptions(policy: Counting, options: AcquireOptions): AcquireWait {
  const { where } = policy
  knownOptions(`${where}: acquire`, options, KNOWN)
  const { cost = 1, maxWait, signal, fairBy: client, priority, ageEvery, size = MAX_WAITERS, tier } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    invalidPolicy(where, 'signal', 'an AbortSignal', signal)
  }
  if (client !== undefined && (typeof client !== 'string' || client === '')) {
    invalidPolicy(where, 'fairBy', 'a non-empty string', client)
  }
  const maxWaitMs = maxWait === undefined ? Number.POSITIVE_INFINITY : waitOrNever(where, 'maxWait', maxWait)
  if (priority !== undefined) checkPriority(where, priority)
  wholeNumber(where, 'size', size, 1)
  const ageEveryMs = ageEveryMsOf(where, ageEvery)
  return {
    cost: checkedCost(policy, cost),
    maxWaitMs,
    signal,
    headStartMs: undefined,
    ageEveryMs,
    client,
    size,
    waitsForStore: true,
    refusal: undefined,
    priority,
    tier,
  }
}
