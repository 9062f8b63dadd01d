/**
 * `@sluice/core/store`: the port between policies and state. A store implements `Store`, and passes the contract of
 * `@sluice/testing`.
 */

export { BANS, type StoreBans } from '../store/bans.js'
export { CHANGES } from '../store/changes.js'
export {
  type Identity,
  identityIn,
  LONGEST_KIND,
  LONGEST_VALUE,
  startOf,
  valueStart,
} from '../store/identity.js'
export {
  LISTS,
  type List,
  type ListedIdentity,
  type ListMatch,
  type ListReport,
  type ListsOfStore,
  type StoreListItem,
  type StoreListOptions,
  type StoreLists,
} from '../store/list.js'
export { OFFENDERS, type StoreOffenders } from '../store/offenders.js'
export {
  type BanTerms,
  type BlockReport,
  type ByteUnit,
  type CalendarWindow,
  type Cell,
  CHARGE,
  type ChargeOutcome,
  CONSUME,
  DEBIT,
  EVERY_POLICY,
  isImpossible,
  KEPT_CHARGES,
  type Keep,
  type KeepTerms,
  type KeptCharge,
  type KernelName,
  type LeaseTerms,
  type Op,
  PEEK,
  type Plan,
  type QuotaUnit,
  REFUND,
  RELEASE,
  RENEW,
  type RelaxedTerms,
  type ResolvedLimit,
  receiptsOf,
  refusalBy,
  requestOf,
  resultOf,
  type SharesTurns,
  STRIDE,
  type Store,
  type StoreKeptCharges,
  type StoreRequest,
  type StoreResult,
  type StoreWaiters,
  type Strike,
  type StrikeResult,
  WAITERS,
  type WaitingClass,
  type WaitingTurn,
} from '../store/store.js'
