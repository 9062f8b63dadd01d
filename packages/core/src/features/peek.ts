import { partsOfLimiter } from '../http/guard/parts-of-limiters.js'
import { type PeekedRequest, peekKnown } from '../http/guard/peek.js'
import { type BasicLimiter, INSIDE } from '../limiter/limiter.js'
import type { KnownRequest } from '../policy/known-request.js'
import {
  type AskedPolicies,
  type GuardOfPolicies,
  guardOfLimiter,
  guardsOf,
  type KnownPolicy,
} from './documents/guards-of.js'

export { guardOfLimiter, guardsOf }

/** What a policy would decide on a request. */
export type PeekedPolicy = PeekedRequest & Pick<KnownPolicy, 'policy' | 'tier' | 'override'>

/** What a limiter would decide on a request that is known in part, by its guard if it has one. Charges nothing. */
export function peekLimiter(limiter: BasicLimiter<never>, known: KnownRequest): Promise<PeekedRequest> {
  const { engine, early } = limiter[INSIDE]
  return peekKnown(partsOfLimiter(limiter) ?? { engine: engine as never, early: early as never }, known)
}

/** Whether a limiter decides on requests: others decide on what the application names. */
export function isOfRequests(limiter: object): boolean {
  return partsOfLimiter(limiter) !== undefined
}

/** The same of each policy of a document, and each of its tiers, by the guard of the document. */
export async function peekPolicies(
  { of }: GuardOfPolicies,
  source: AskedPolicies,
  known: KnownRequest,
): Promise<readonly PeekedPolicy[]> {
  const all = (await source.forKnown(known as never)) as readonly KnownPolicy[]
  return Promise.all(
    all.map(async ({ policy, tier, override, matched, needs, unless }) => {
      const { parts, choice } = of(matched)
      const peeked = await peekKnown(parts, known, choice)
      const isKnown = peeked.isReported || (peeked.verdict?.kind === 'listed' && needs.length === 0)
      const more = isKnown ? [] : needs
      return {
        policy,
        tier,
        override,
        ...peeked,
        needs: [...new Set([...peeked.needs, ...more])],
        unless: [...new Set([...peeked.unless, ...unless, ...more])],
      }
    }),
  )
}
