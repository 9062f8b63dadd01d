/**
 * `@sluice/core/internal`: parts of the core that the other `@sluice/` packages need beyond its public entries. It is not for
 * users: semver does not cover it, and every version may change it.
 */

export { identityText, listedValue } from '../blocks/given-blocks.js'
export { hasBegun } from '../features/bans/block-events.js'
export { blockBy, type RecordedBlocks, unblockBy } from '../features/bans/recorded-blocks.js'
export { createGuard, guardByPolicies, policyOf, stateNamesOf } from '../features/composed.js'
export type { GuardOfPolicies, KnownPolicy } from '../features/documents/guards-of.js'
export type { PassOne } from '../features/documents/policies-guard.js'
export { FileWatcher } from '../features/lists/files/file-watcher.js'
export { stampOf } from '../features/lists/files/stamp.js'
export { countsOnly } from '../features/outcomes/counting.js'
export {
  guardOfLimiter,
  guardsOf,
  isOfRequests,
  type PeekedPolicy,
  peekLimiter,
  peekPolicies,
} from '../features/peek.js'
export { CONSOLE_LIMITER } from '../features/records/counts.js'
export { type Figures, figuresIn, type LiveProcess, startReporting } from '../features/records/figures.js'
export { hasOthers, type LiveFigures, USED_BOUNDS } from '../features/records/live.js'
export { AWAY, DURATION, DURATION_SUM, labelsIn, othersOf, PROCESSES } from '../features/records/names.js'
export { sayRecording } from '../features/records/process-counts.js'
export { SummedRows } from '../features/records/summed-rows.js'
export { passThroughGuard } from '../http/guard/guard.js'
export type { Outcome } from '../http/guard/outcome.js'
export { PathTree } from '../http/identity/path-tree.js'
export { CELL_KINDS, hasPermits, kindOf } from '../kinds/all.js'
export {
  isCountOf,
  resetCounts,
  type UnknownLimits,
  type UsedLimit,
  usedLimits,
} from '../kinds/stored-counts.js'
export { limiterOfIdentities, listsOfLimiter } from '../limiter/limiter.js'
export { isAddressForgeable, lastProxyTrust } from '../limiter/open-proxy.js'
export { KeyedRows, NONE, SHELF_BITS } from '../memory/keyed-rows.js'
export { checkCost } from '../policy/costs.js'
export { freeLimitName } from '../policy/free-name.js'
export { checkedKey } from '../policy/key.js'
export { valueFor } from '../policy/kinds.js'
export { KnownRequest } from '../policy/known-request.js'
export { capacityOf } from '../policy/limits/buckets.js'
export { defaultLimit } from '../policy/limits/sliding-window.js'
export type { ReadablePlan } from '../policy/plan.js'
export { planNow } from '../policy/plan-now.js'
export { MAX_LIMITS } from '../policy/policy.js'
export { isPrivateAddress } from '../policy/private-address.js'
export type { StateName } from '../policy/state-names.js'
export { commandsOfBlocks } from '../redis/blocks/commands.js'
export { commandsNeeded } from '../redis/scripts/commands-needed.js'
export { KEY_LAYOUT } from '../redis/scripts/keys.js'
export { pathOf, UNSEEN_RESPONSE } from '../request/context.js'
export { type FigureStep, STEP_MS } from '../store/figures.js'
export { countedHash, isKind, isSecretKind, textValue, writtenHash } from '../store/identity.js'
export type { KeyedScripts, StoreScript } from '../store/keyed-scripts.js'
export type { LastRefusal, LastRefusals } from '../store/last-refusals.js'
export type { SharedNotes } from '../store/shared-notes.js'
export { keyedScriptsOf, lastRefusalsOf, sharedNotesOf } from '../store/store.js'
export { isBytes } from '../store/units.js'
export { beginAtCaller } from '../util/caller.js'
export { durationMs, durationText, MAX_DURATION_MS, timeLeft } from '../util/duration.js'
export { invalidPolicy } from '../util/errors.js'
export { escapeControls, inLine, quoted } from '../util/escape.js'
export { getOrInsert } from '../util/get-or-insert.js'
export { groupBy } from '../util/group-by.js'
export { Heap } from '../util/heap.js'
export { hintAfter } from '../util/hint-after.js'
export { addressText, type IpRange, ipAddress } from '../util/ip-address.js'
export { ipRange, networkText, RANGE_FORMS } from '../util/ip-range.js'
export { Listeners } from '../util/listeners.js'
export { hintFor } from '../util/option-hints.js'
export { hasOwn, isPropertyOf, ownFieldsOf, propertyOf } from '../util/property-of.js'
export { RangeMap } from '../util/range-map.js'
export { replaceFile } from '../util/replace-file.js'
export { instantText, tableOf } from '../util/table.js'
export { textOfFile } from '../util/text-of-file.js'
export { isThenable } from '../util/thenable.js'
export type { Timer, Timing } from '../util/timing.js'
export { trimCounts } from '../util/trim-counts.js'
export { addressIn, clientIn, MAX_ADDRESSES, TrustedProxies } from '../util/trusted-proxies.js'
export { shortened, unnamedPath } from '../util/unnamed-path.js'
export { knownOptions, optionalFunction, refusePolluted, wholeNumber } from '../util/validate.js'
export { emitWarning, LIMITER_WARNINGS, STORE_WARNINGS } from '../util/warnings.js'
export { ignorePromises, type MaybePromise, whenAllKnown, whenKnown } from '../util/when-known.js'
export { bytes, counted, grouped, listed, ms, percent } from '../util/words.js'
export { identitiesIn } from '../verdict/decision.js'
export { decisionIn } from '../verdict/verdict.js'
