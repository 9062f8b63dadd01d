/**
 * `@sluice/core/internal`: parts of the core that the other `@sluice/` packages need beyond its public entries. It is not for
 * users: semver does not cover it, and every version may change it.
 */

export { PathTree } from '../http/identity/path-tree.js'
export { isAddressForgeable } from '../limiter/open-proxy.js'
export { FileWatcher } from '../lists/files/file-watcher.js'
export { stampOf } from '../lists/files/stamp.js'
export { type StateName, stateNamesOf } from '../policy/state-names.js'
export { commandsOfBlocks } from '../redis/blocks/commands.js'
export { commandsNeeded } from '../redis/health/probing.js'
export { KEY_LAYOUT } from '../redis/scripts/keys.js'
export { pathOf } from '../request/context.js'
export { CELL_KINDS, hasPermits, kindOf } from '../store/cell-kinds.js'
export { isKind, isSecretKind } from '../store/identity.js'
export { type Duration, durationMs, durationText } from '../util/duration.js'
export { escapeControls } from '../util/escape.js'
export { type IpRange, ipAddress } from '../util/ip-address.js'
export { ipRange, RANGE_FORMS } from '../util/ip-range.js'
export { type Audience, Listeners } from '../util/listeners.js'
export { nearestOf } from '../util/nearest.js'
export { hintFor } from '../util/option-hints.js'
export { RangeMap } from '../util/range-map.js'
export { knownOptions, refusePolluted } from '../util/validate.js'
export { emitWarning } from '../util/warnings.js'
