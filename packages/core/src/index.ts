export type { BanGrowth, BanOption, BanOptions } from './features/bans/ban-terms.js'
export type { BlockOptions, StrikeOptions } from './features/bans/block-options.js'
export type { BanCountOptions } from './features/bans/request-bans.js'
export { type Trap, type TrapOptions, trap } from './features/bans/trap.js'
export type { BodyOptions } from './features/bodies/body.js'
export type { ResponseBytesOptions } from './features/bodies/response-bytes.js'
export type { ChargesOption, ChargesOptions } from './features/charges/charge-terms.js'
export { createLimiter } from './features/composed.js'
export type { GivenClient, MatchedPolicies, PolicySource } from './features/documents/policy-source.js'
export { Limiter } from './features/limiter.js'
export { type FileList, type FileListOptions, fileList } from './features/lists/files/file-list.js'
export type { ListFormat } from './features/lists/files/formats.js'
export { ipRanges } from './features/lists/ip-ranges.js'
export { type ListedValues, list } from './features/lists/list.js'
export type { DenyOptions, ListItem, ListOptions, ListPredicate, ListsOption } from './features/lists/options.js'
export { storeList } from './features/lists/store-list.js'
export { type MemoryStoreOptions, memoryStore } from './features/memory-store.js'
export { type HandlerDecorator, limiterOf } from './features/method-decorator.js'
export type { LimiterOptions, RateLimitOptions } from './features/options.js'
export type { ChargingOptions } from './features/outcomes/charging.js'
export type { CountFunction, CountOnly, CountOptions } from './features/outcomes/counting.js'
export type { AddedPolicyOptions, PolicyOptions } from './features/policy-options.js'
export type { AcquireOptions } from './features/queues/acquire-options.js'
export { type QueueOptions, queue } from './features/queues/queue-responder.js'
export type { SharedTurnsOption, SharedTurnsOptions } from './features/queues/shared-turns-terms.js'
export type { KeptState, KeptStrikes } from './features/records/kept-state.js'
export { liveFigures } from './features/records/live-figures.js'
export { RedisStore } from './features/redis-store-class.js'
export type { ConsistencyOption, ConsistencyOptions } from './features/relaxed/relaxed-terms.js'
export { concurrency } from './http/charging/concurrency.js'
export { releasePermits } from './http/charging/permit-holder.js'
export type { EnforcementOptions, EnforceOptions } from './http/guard/enforcement.js'
export type { InvalidOption } from './http/guard/invalid.js'
export type { BasicRateLimitOptions } from './http/guard/options.js'
export type { LegacyNames, LegacyReset } from './http/headers/single.js'
export type { HeaderFormat, HeadersOption } from './http/headers/table.js'
export type { HeaderField } from './http/headers/writer.js'
export type { AnonymousOption } from './http/identity/anonymous.js'
export {
  byCookie,
  byCredentials,
  byHeader,
  byUser,
  type CookieOptions,
  type CredentialsOptions,
  hashedKey,
  type SecretOptions,
  type UserOptions,
} from './http/identity/extractors.js'
export { byIp, type IpOptions } from './http/identity/ip.js'
export { byMethod, byPath, everyone, type PathOptions } from './http/identity/request-line.js'
export { byRoute, type RouteOptions } from './http/identity/route.js'
export { type DegradeOptions, degrade } from './http/responders/degrade.js'
export { type DelayOptions, delay } from './http/responders/delay.js'
export { escalate } from './http/responders/escalate.js'
export { type PassOptions, pass } from './http/responders/pass.js'
export { RateLimitError } from './http/responders/rate-limit-error.js'
export { type RejectBody, type RejectOptions, reject } from './http/responders/reject.js'
export type {
  Action,
  Ending,
  Handover,
  Later,
  NativeHandler,
  Refused,
  Reply,
  Responder,
  ResponderTraits,
  TurnOptions,
  TurnResult,
} from './http/responders/responder.js'
export { type ShadowBody, type ShadowOptions, shadow } from './http/responders/shadow.js'
export { type TarpitOptions, tarpit } from './http/responders/tarpit.js'
export { type ThrottleOptions, throttle } from './http/responders/throttle.js'
export type { NamedCell } from './kinds/cell-names.js'
export { events, type ProcessEvents } from './limiter/all-events.js'
export type {
  BanEvent,
  DecisionEvent,
  DecisionOutcome,
  LimiterEvents,
  ListenOptions,
  NearLimitEvent,
  OutboundEvent,
  OutboundLimit,
  PoliciesReloadedEvent,
  SluiceEvents,
  StrikeEvent,
  WaitedEvent,
} from './limiter/events.js'
export type { UnavailableOption, UnavailableOptions } from './limiter/fallback.js'
export type { BasicLimiter } from './limiter/limiter.js'
export type { BasicLimiterOptions, CostOptions } from './limiter/options.js'
export type { KeyOptions } from './logging/key-text.js'
export { type Logger, type LoggingOptions, startLogging } from './logging/start-logging.js'
export type { Units } from './policy/costs.js'
export { compose, keyed } from './policy/keyed.js'
export type { LimitForm } from './policy/limit-form.js'
export {
  type GcraOptions,
  gcra,
  type LeakyBucketOptions,
  leakyBucket,
  type TokenBucketOptions,
  tokenBucket,
} from './policy/limits/buckets.js'
export type { RateOptions } from './policy/limits/common.js'
export type { ConcurrencyOptions } from './policy/limits/concurrency.js'
export {
  type CalendarOptions,
  calendarDay,
  calendarMonth,
  type FixedWindowOptions,
  fixedWindow,
  perMonth,
} from './policy/limits/fixed-window.js'
export type {
  CommonOptions,
  KeyFunction,
  KeyTraits,
  LeasableOptions,
  LeaseOptions,
  Limit,
  LimitCalendar,
  OrFunction,
  UnitOptions,
  Weekday,
} from './policy/limits/limit.js'
export type { Reserve } from './policy/limits/reserve.js'
export { perDay, perHour, perMinute, perSecond, slidingLog } from './policy/limits/sliding-log.js'
export { type SlidingWindowOptions, slidingWindow } from './policy/limits/sliding-window.js'
export type { SpreadOptions } from './policy/limits/spread.js'
export type { BasicPolicyOptions } from './policy/policy.js'
export type { PriorityOption } from './policy/priority.js'
export type { CostByUnit, CostOption } from './policy/request-cost.js'
export type { RedisClient } from './redis/clients/connect.js'
export type { StoreState } from './redis/health/breaker.js'
export type { Readiness } from './redis/health/readiness.js'
export type { RedisStoreOptions } from './redis/options.js'
export { redisStore } from './redis-store.js'
export type { HttpContext, ProxyTrust } from './request/context.js'
export type { Algorithm } from './store/algorithms.js'
export type { AddBlockOptions, BlockPage, BlockQuery, BlockScope, StoreBlocks } from './store/blocks.js'
export type { ChangePage, ChangesQuery, ChangeToRecord, StoreChanges } from './store/changes.js'
export type { BlockEntry, ChangeEntry, ChangeState, StoreListEntry } from './store/entries.js'
export type { BanEvictedEvent, BlockEvent, StoreEvent, StoreEvents, UnblockEvent } from './store/events.js'
export type { FiguresReporting } from './store/figures-reporting.js'
export type { Histogram, StoreHealth, StoreStats } from './store/health.js'
export type { Identity, IdentityByKind, KeyValue } from './store/identity.js'
export type { ChargeOutcome } from './store/kept-charge.js'
export type {
  List,
  ListedIdentity,
  ListMatch,
  ListReport,
  StoreListItem,
  StoreListOptions,
  StoreLists,
} from './store/list.js'
export type { ManagedStore } from './store/managed.js'
export type { Offender, OffendersQuery, OffendersReport, OffendersWindow } from './store/offenders.js'
export type { ByteUnit, QuotaUnit, Store } from './store/store.js'
export type { ListEntryOptions, StoreList, StoreListPage, StoreListQuery } from './store/store-list.js'
export type { Duration } from './util/duration.js'
export { SluiceError, type SluiceErrorCode } from './util/errors.js'
export type { WarningEvent } from './util/warnings.js'
export type { DecisionSource, UnitReport, VerdictKind } from './verdict/decision.js'
export type { LimitReport } from './verdict/limit-report.js'
export type { Meter, MeterOptions } from './verdict/meter.js'
export type { RefusalReason } from './verdict/refusals.js'
export { type BanReport, type ShownBlock, Verdict } from './verdict/verdict.js'
