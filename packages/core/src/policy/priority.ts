import type { HttpContext } from '../request/context.js'
import { type Duration, MAX_DURATION_MS, waitOrNever } from '../util/duration.js'
import { invalidPolicy } from '../util/errors.js'
import { whenKnown } from '../util/when-known.js'

/** A number by the name of the tier, or a function of the request, which may be async. Higher comes first. */
export type PriorityOption<Subject> =
  | Readonly<Record<string, number>>
  | ((subject: Subject, context: HttpContext<Subject>) => number | PromiseLike<number>)

export type PriorityFunction<Subject> = (subject: Subject, context: HttpContext<Subject>) => number | Promise<number>

/**
 * The option as it applies to requests of one tier. Undefined if it is not given.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function priorityFor<Subject>(
  where: string,
  option: PriorityOption<Subject> | undefined,
  tier: string | undefined,
): PriorityFunction<Subject> | undefined {
  if (option === undefined) return undefined
  if (typeof option === 'function') {
    return (subject, context) => whenKnown(option(subject, context), (priority) => checkPriority(where, priority))
  }
  if (typeof option !== 'object' || option === null || tier === undefined) {
    invalidPolicy(where, 'priority', 'a function of the request, or beside tiers a number by tier', option)
  }
  const priority = Object.hasOwn(option, tier) ? checkPriority(where, option[tier], `[${tier}]`) : 0
  return () => priority
}

/**
 * The wait in ms after which a request ranks with a new one of the next class. With a hundred years, none gets ahead of one of
 * a higher class.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function ageEveryMsOf(where: string, ageEvery: Duration = '2s'): number {
  return Math.min(waitOrNever(where, 'ageEvery', ageEvery), MAX_DURATION_MS)
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkPriority(where: string, priority: unknown, of = ''): number {
  if (typeof priority === 'number' && Number.isFinite(priority)) return priority
  return invalidPolicy(where, `priority${of}`, 'a finite number', priority)
}
