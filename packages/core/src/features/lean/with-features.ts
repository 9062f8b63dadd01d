import type { GuardComposition } from '../../http/guard/parts.js'
import { BasicLimiter, type Composition, makeLimiterOf } from '../../limiter/limiter.js'
import { wrongPolicy } from '../../util/errors.js'
import { propertiesOf, propertyOf } from '../../util/property-of.js'
import type { Lean } from '../lean-types.js'
import { offenders } from '../offenders/feature.js'
import { ABSENT } from './absent.js'
import { addFeature, FEATURE_OF, FEATURE_OF_METHOD, type FeatureName, type LeanFeature } from './lean-feature.js'
import { type LeanStoreOptions, leanStore } from './memory-store.js'

/** Names of features, in the order of their checks, steps and layers of a memory store: the last one has the highest layer. */
const ORDER: readonly FeatureName[] = [
  'lists',
  'outcomes',
  'queues',
  'relaxed',
  'responseBytes',
  'meters',
  'bans',
  'charges',
]

/**
 * A core with some features alone, for those who bundle. See docs/module-systems.md.
 *
 * @example const { createLimiter } = withFeatures(bans)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(...features: Features): Lean<Features> {
  const all = inOrder(features)
  return leanOf<Features>(all, leanComposition(all))
}

/** The functions of a composition without HTTP. */
export function leanOf<Features extends readonly LeanFeature[]>(
  features: readonly LeanFeature[],
  composition: Composition,
): Lean<Features> {
  return {
    createLimiter: (options: object) => makeLimiterOf(options as never, composition).limiter,
    memoryStore: (options: LeanStoreOptions = {}) => leanStore(features, options),
  } as unknown as Lean<Features>
}

/** The composition of features, which are in order. */
export function leanComposition(features: readonly LeanFeature[]): GuardComposition {
  const present = new Set(features.map(({ name }) => name))
  const absent = ORDER.filter((name) => !present.has(name))
  const absences = absent.flatMap((name) => propertyOf(ABSENT, name) ?? [])
  const makeStore = (clock?: () => number) => leanStore(features, clock ? { clock } : {})
  return {
    // Offenders are an option of stores, and those on Redis may have it.
    features: [...features.map(({ limiter }) => limiter), offenders, ...absences],
    guards: [...propertiesOf(features, 'guard'), ...absences],
    Limiter: limiterClass(features),
    defaultStore: () => makeStore(),
    localStore: makeStore,
    absent: Object.fromEntries(
      Object.entries(FEATURE_OF).flatMap(([option, name]) => (present.has(name) ? [] : [[option, addFeature(name)]])),
    ),
  }
}

/** @throws SluiceError `INVALID_POLICY` for what is no feature */
export function inOrder(features: readonly LeanFeature[]): readonly LeanFeature[] {
  for (const feature of features) {
    if (!ORDER.includes(feature?.name))
      wrongPolicy('withFeatures: expected features, such as bans of @sluice/core/features')
  }
  return ORDER.flatMap((name) => features.find((feature) => feature.name === name) ?? [])
}

/** The class of limiters with the methods of these features. Those of others say which feature they need. */
function limiterClass(features: readonly LeanFeature[]): typeof BasicLimiter {
  class Limiter<Subject> extends BasicLimiter<Subject> {}
  for (const [method, name] of Object.entries(FEATURE_OF_METHOD)) {
    const value = () => wrongPolicy(`limiter: ${method}: ${addFeature(name)}`)
    Object.defineProperty(Limiter.prototype, method, { value, configurable: true, writable: true })
  }
  return propertiesOf(features, 'extend').reduce<typeof BasicLimiter>((Base, extend) => extend(Base), Limiter)
}
