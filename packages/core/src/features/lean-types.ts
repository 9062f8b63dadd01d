import type { BasicGuard } from '../http/guard/guard.js'
import type { BasicRateLimitOptions } from '../http/guard/options.js'
import type { BasicLimiter } from '../limiter/limiter.js'
import type { BasicLimiterOptions } from '../limiter/options.js'
import type { LimitForm } from '../policy/limit-form.js'
import type { IdentityByKind } from '../store/identity.js'
import type { Store } from '../store/store.js'
import type { BanOption } from './bans/ban-terms.js'
import type { ResponseBytesOptions } from './bodies/response-bytes.js'
import type { ChargesOption } from './charges/charge-terms.js'
import type { FEATURE_OF, FeatureName, LeanFeature } from './lean/lean-feature.js'
import type { LeanStoreOptions } from './lean/memory-store.js'
import type { Limiter } from './limiter.js'
import type { ListOptions } from './lists/options.js'
import type { ChargingOptions } from './outcomes/charging.js'
import type { SharedTurnsOption } from './queues/shared-turns-terms.js'
import type { ConsistencyOption } from './relaxed/relaxed-terms.js'

/** The options of limiters that each feature adds. */
interface AddedOptions<Subject> {
  queues: SharedTurnsOption
  relaxed: ConsistencyOption
  charges: ChargesOption
  bans: BanOption<Subject>
  lists: ListOptions<Subject>
  outcomes: unknown
  responseBytes: unknown
  meters: unknown
}

/** The same of `rateLimit`. */
interface AddedRequestOptions<Request> extends Omit<AddedOptions<Request>, 'outcomes' | 'responseBytes'> {
  outcomes: ChargingOptions<Request>
  responseBytes: ResponseBytesOptions
}

/** The methods of limiters that each feature adds. */
interface AddedMethods<Subject> {
  queues: Pick<Limiter<Subject>, 'acquire'>
  relaxed: unknown
  charges: Pick<Limiter<Subject>, 'refund' | 'settle' | 'release' | 'renew'>
  bans: Pick<Limiter<Subject>, 'block' | 'unblock' | 'strike'>
  lists: unknown
  outcomes: unknown
  responseBytes: unknown
  meters: unknown
}

/** The additions of all of these features. */
type Of<Added, Names extends keyof Added> = [Names] extends [never]
  ? unknown
  : (Names extends keyof Added ? (added: Added[Names]) => void : never) extends (added: infer All) => void
    ? All
    : never

/** The options of all other features, each with what to do. */
type Absent<Names> = {
  readonly [Option in keyof typeof FEATURE_OF as (typeof FEATURE_OF)[Option] extends Names
    ? never
    : Option]?: `add the feature: withFeatures(${(typeof FEATURE_OF)[Option]})`
}

/** The names of features. */
export type NamesOf<Features extends readonly LeanFeature[]> = Features[number]['name']

/** A limiter with the methods of these features. */
export type LeanLimiter<Subject, Names extends FeatureName> = BasicLimiter<Subject> & Of<AddedMethods<Subject>, Names>

/** The options of a limiter with these features. */
export type LeanLimiterOptions<Subject, Names extends FeatureName> = BasicLimiterOptions<Subject> &
  Of<AddedOptions<Subject>, Names> &
  Absent<Names | 'outcomes' | 'responseBytes'>

/** The options of `rateLimit` with these features. */
export type LeanRateLimitOptions<Request, Names extends FeatureName> = BasicRateLimitOptions<Request> &
  Of<AddedRequestOptions<Request>, Names> &
  Absent<Names>

/** A guard whose limiter has the methods of these features. */
export type LeanGuard<Request, Names extends FeatureName> = BasicGuard<Request> & {
  readonly limiter: LeanLimiter<Request | string | IdentityByKind, Names>
}

/** The functions that `withFeatures` returns. */
export interface Lean<Features extends readonly LeanFeature[]> {
  /** As `createLimiter` of `@sluice/core`, with these features. */
  createLimiter<Subject = string>(
    options: LeanLimiterOptions<Subject, NamesOf<Features>> & LimitForm,
  ): LeanLimiter<Subject, NamesOf<Features>>
  /** As `memoryStore` of `@sluice/core`, with these features. `redisStore` is the same for all. */
  memoryStore(options?: LeanStoreOptions): Store
}

/** The functions that `withFeatures` of an adapter returns, with these features. `Limiting`: its middleware or hook. */
export interface LeanAdapter<Request, Features extends readonly LeanFeature[], Limiting> extends Lean<Features> {
  /** As `rateLimit` of the adapter, with these features. For Fastify a hook, not a plugin. */
  rateLimit(options: LeanRateLimitOptions<Request, NamesOf<Features>> & LimitForm, ...uncalled: never[]): Limiting
}
