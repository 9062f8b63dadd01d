/**
 * `@sluice/core/internal`: parts of the core that the other `@sluice/` packages need beyond its public entries. It is not for
 * users: semver does not cover it, and every version may change it.
 */

export { hasBegun } from '../blocks/block-events.js'
export { identityText } from '../blocks/given-blocks.js'
export { blockBy, unblockBy } from '../blocks/recorded-blocks.js'
export { CONSOLE_LIMITER } from '../figures/counts.js'
export { type Figures, figuresIn, type LiveProcess, startReporting } from '../figures/figures.js'
export { type LiveFigures, USED_BOUNDS } from '../figures/live.js'
export { AWAY, DURATION, DURATION_SUM, labelsIn, othersOf, PROCESSES } from '../figures/names.js'
export { passThroughGuard } from '../http/guard/guard.js'
export type { Outcome } from '../http/guard/outcome.js'
export { guardByPolicies, type PassOne } from '../http/guard/policies-guard.js'
export { PathTree } from '../http/identity/path-tree.js'
export { limiterOfIdentities } from '../limiter/limiter.js'
export { isAddressForgeable } from '../limiter/open-proxy.js'
export { FileWatcher } from '../lists/files/file-watcher.js'
export { stampOf } from '../lists/files/stamp.js'
export { KeyedRows, NONE, SHELF_BITS } from '../memory/keyed-rows.js'
export { planNow } from '../policy/calendar/plan-now.js'
export { valueFor } from '../policy/kinds.js'
export type { ReadablePlan } from '../policy/plan.js'
export { Policy } from '../policy/policy.js'
export { isPrivateAddress } from '../policy/private-address.js'
export { type StateName, stateNamesOf } from '../policy/state-names.js'
export { commandsOfBlocks } from '../redis/blocks/commands.js'
export { commandsNeeded } from '../redis/health/probing.js'
export { KEY_LAYOUT } from '../redis/scripts/keys.js'
export { pathOf } from '../request/context.js'
export { CELL_KINDS, hasPermits, kindOf } from '../store/cell-kinds.js'
export { type FigureStep, STEP_MS } from '../store/figures.js'
export { isKind, isSecretKind, textValue } from '../store/identity.js'
export type { LastRefusal, LastRefusals } from '../store/last-refusals.js'
export { lastRefusalsOf } from '../store/store.js'
export {
  isCountOf,
  resetCounts,
  type StoredCounts,
  type UnknownLimits,
  type UsedLimit,
  usedLimits,
} from '../store/stored-counts.js'
export { isBytes } from '../store/units.js'
export { type Duration, durationMs, durationText } from '../util/duration.js'
export { invalidPolicy } from '../util/errors.js'
export { escapeControls } from '../util/escape.js'
export { getOrInsert } from '../util/get-or-insert.js'
export { Heap } from '../util/heap.js'
export { type IpRange, ipAddress } from '../util/ip-address.js'
export { ipRange, RANGE_FORMS } from '../util/ip-range.js'
export { type Audience, Listeners } from '../util/listeners.js'
export { nearestOf } from '../util/nearest.js'
export { hintFor } from '../util/option-hints.js'
export { RangeMap } from '../util/range-map.js'
export { replaceFile } from '../util/replace-file.js'
export { isThenable } from '../util/thenable.js'
export type { Timer, Timing } from '../util/timing.js'
export { knownOptions, optionalFunction, refusePolluted, wholeNumber } from '../util/validate.js'
export { emitWarning, LIMITER_WARNINGS, STORE_WARNINGS } from '../util/warnings.js'
export { type MaybePromise, whenAllKnown, whenKnown } from '../util/when-known.js'
export { identitiesIn } from '../verdict/decision.js'
export { decisionIn } from '../verdict/verdict.js'
