import { createGuardOf } from '../../http/guard/guard.js'
import { refuseUncalled } from '../../util/factories.js'
import type { LeanAdapter, LeanGuard, NamesOf } from '../lean-types.js'
import type { LeanFeature } from './lean-feature.js'
import { inOrder, leanComposition, leanOf } from './with-features.js'

/**
 * Makes `withFeatures` of an adapter. `limiting`: makes the middleware or hook of a guard.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function leanAdapter<Request, Features extends readonly LeanFeature[], Limiting>(
  given: Features,
  limiting: (guard: LeanGuard<Request, NamesOf<Features>>) => Limiting,
): LeanAdapter<Request, Features, Limiting> {
  const features = inOrder(given)
  const composition = leanComposition(features)
  return {
    ...leanOf<Features>(features, composition),
    rateLimit(options, ...uncalled) {
      refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
      return limiting(createGuardOf(options, composition) as unknown as LeanGuard<Request, NamesOf<Features>>)
    },
  }
}
