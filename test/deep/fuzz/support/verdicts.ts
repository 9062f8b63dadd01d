import type { Verdict } from '@sluice/core'
import { must } from './errors.js'

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0

/** Expects numbers that can be sent to a client, and that agree with the decision. */
export function expectSane(verdict: Verdict): void {
  const { allowed, reason, remaining, retryAfterMs, resetAfterMs, delayMs, cost, limits } = verdict
  must(allowed === (reason === undefined), 'a reason for a refusal alone', verdict)
  must(isCount(remaining) && isCount(resetAfterMs) && isCount(delayMs) && isCount(cost), 'whole numbers', verdict)
  must(reason === 'impossible' ? retryAfterMs === undefined : isCount(retryAfterMs), 'a time to come back at', verdict)
  if (reason !== 'left') must(allowed === (retryAfterMs === 0), 'a wait for who is refused alone', verdict)
  must(!Object.is(cost, -0) && !Object.is(remaining, -0), 'no negative zero', verdict)
  for (const limit of limits) {
    must(isCount(limit.remaining) && limit.remaining <= limit.capacity, 'no more than fits', limit)
    must(isCount(limit.resetAfterMs) && isCount(limit.limit) && isCount(limit.windowMs), 'whole numbers', limit)
    must(limit.retryAfterMs === undefined || isCount(limit.retryAfterMs), 'a time to come back at', limit)
    must(limit.allowed === (limit.retryAfterMs === 0), 'a wait for who is refused alone', limit)
  }
}
