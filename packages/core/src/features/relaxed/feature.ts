import type { LimiterFeature } from '../../limiter/engine.js'
import { addRelaxedCounting } from './relaxed-terms.js'

/** Counts that processes make by themselves, and exchange: `consistency`. */
export const relaxed: LimiterFeature = {
  policyOptions: ['consistency'],
  needsWindows: ({ consistency }: { readonly consistency?: unknown }) => consistency !== undefined,
  policy: addRelaxedCounting,
}
