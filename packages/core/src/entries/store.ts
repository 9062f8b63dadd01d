/**
 * `@sluice/core/store`: the port between policies and state. A store implements `Store`, and passes the contract of
 * `@sluice/testing`.
 */

export { BANS, type StoreBans } from '../store/bans.js'
export {
  type Identity,
  identityIn,
  LONGEST_KIND,
  LONGEST_VALUE,
  startOf,
  valueStart,
} from '../store/identity.js'
export type {
  List,
  ListedIdentity,
  ListMatch,
  ListReport,
  StoreListItem,
  StoreListOptions,
  StoreLists,
} from '../store/list.js'
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
  type StoreRequest,
  type StoreResult,
  type Strike,
  type StrikeResult,
  type WaitingClass,
  type WaitingTurn,
} from '../store/store.js'
