import { SluiceError, type Store, type UnavailableOptions } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { whenKnown } from '@sluice/core/internal'
import type { Policies } from '@sluice/policies'
import type { RequestLimiter } from './charges.js'
import { type Decision, decisionOf, failedDecision } from './decision.js'
import { DecisionContext } from './decision-context.js'
import type { DescribedRequest } from './described-request.js'

export type Decide = (request: DescribedRequest) => Decision | Promise<Decision>

/** The name in metrics and keys, like that of `rateLimit({ policies })`. */
const LIMITER = 'default'

export interface DeciderOptions {
  readonly policies: Policies
  readonly store: Store
  readonly unavailable: NonNullable<UnavailableOptions['unavailable']>
  /** For how long charges are kept, in ms. Undefined if none are. */
  readonly keepMs: number | undefined
  /** Whether callers give the cost of a request. */
  readonly takesCosts: boolean
  /** The remedy, for a warning, where all requests seem to come from one proxy. */
  readonly proxyRemedy: string
  /** Called once a request is decided on. */
  readonly onDecided?: ((context: DecisionContext, decision: Decision) => void) | undefined
  /** Called with failures that no caller caused. */
  readonly onFailure: (error: unknown) => void
}

/** Decides on requests that others describe. A request that cannot be decided is refused, whatever went wrong. */
export function makeDecider(options: DeciderOptions): { readonly decide: Decide; readonly limiter: RequestLimiter } {
  const { policies, store, unavailable, keepMs, takesCosts, proxyRemedy, onDecided, onFailure } = options
  const guard = createGuard<DescribedRequest>({
    name: LIMITER,
    policies,
    store,
    unavailable,
    ...(keepMs !== undefined && { charges: { keep: keepMs } }),
    ...(takesCosts && { cost: ({ cost = 1 }: DescribedRequest) => cost }),
  })
  const failed = (error: unknown): Decision => {
    // Such as a tier that the document does not have: names of callers are looked up in the document.
    if (takesCosts && error instanceof SluiceError) return failedDecision(400, error.message)
    onFailure(error)
    return failedDecision(500)
  }
  const announced = (context: DecisionContext, decided: Decision | Promise<Decision>) =>
    whenKnown(decided, (decision) => {
      onDecided?.(context, decision)
      return decision
    })
  const decide: Decide = (request) => {
    try {
      const context = new DecisionContext(request, proxyRemedy)
      const outcome = guard(context)
      const decided = outcome instanceof Promise ? outcome.then(decisionOf, failed) : decisionOf(outcome)
      return onDecided ? announced(context, decided) : decided
    } catch (error) {
      return failed(error)
    }
  }
  return { decide, limiter: guard.limiter }
}
