import type { WaitedEvent } from '../../limiter/events.js'
import { type BasicLimiter, INSIDE, type LimiterInside } from '../../limiter/limiter.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { type AcquireOptions, type AcquireWait, acquireOptions } from './acquire-options.js'
import { type LimiterQueues, QUEUES } from './limiter-queues.js'
import type { Resolver } from './request-waiter.js'
import { WaitExceeded } from './waiter.js'

/** See `Limiter.acquire`. */
export async function acquire<Subject>(
  limiter: LimiterInside<Subject>,
  subject: Subject,
  options: AcquireOptions,
  onStart?: () => void,
): Promise<Verdict> {
  const { engine, early, announce } = limiter
  const { where } = engine.policy
  const began = performance.now()
  const wait = { ...acquireOptions(engine.policy, options), onStart }
  const pending = early?.pending
  if (pending) await pending
  let verdict: Verdict
  try {
    verdict = await admission(limiter, subject, wait)
  } catch (error) {
    if (error instanceof WaitExceeded && error.refusal) announce(subject, error.refusal)
    throw error
  }
  announce(subject, verdict)
  if (verdict.delayMs > 0) {
    try {
      const maxWaitMs = wait.maxWaitMs - (performance.now() - began)
      await queuesOf(limiter).booked.waitWithin(where, verdict, { ...wait, maxWaitMs })
    } catch (error) {
      await engine.charges.refund(verdict[DECISION])
      throw error
    }
  }
  return verdict
}

/**
 * For our own packages: a wait that is part of a longer one, which `observeWait` observes. See `Limiter.acquire`. `onStart`: called if
 * it cannot be admitted at once.
 */
export async function acquirePart<Subject>(
  limiter: BasicLimiter<Subject>,
  subject: Subject,
  options: AcquireOptions,
  onStart: () => void,
): Promise<Verdict> {
  return acquire(limiter[INSIDE], subject, options, onStart)
}

/** For our own packages: begins a wait of a limiter. Returns the function to call at its end; undefined if nothing observes it. */
export function observeWait(limiter: BasicLimiter<never>): ((outcome: WaitedEvent['outcome']) => void) | undefined {
  const { emitter, policy } = limiter[INSIDE].engine
  return emitter.waits(policy.name)
}

/** What decides before the limits admits or refuses at once. */
async function admission<Subject>(
  limiter: LimiterInside<Subject>,
  subject: Subject,
  wait: AcquireWait,
): Promise<Verdict> {
  const { engine, subjects, decideEarly } = limiter
  const early = decideEarly(subject)
  if (early?.allowed) return early
  if (early) throw new WaitExceeded(`${engine.policy.where}: acquire: a list denies it`, undefined, early)
  const resolver = subjects.resolver(subject, wait.tier, wait.priority)
  const resolve: Resolver<Subject> = resolver instanceof Promise ? await resolver : resolver
  return queuesOf(limiter).waitTurn(resolve, wait)
}

function queuesOf<Subject>({ engine }: LimiterInside<Subject>): LimiterQueues<Subject> {
  return engine.parts.get(QUEUES) as LimiterQueues<Subject>
}
