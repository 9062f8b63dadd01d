export * from '@sluice/core'
export { createTurns, type OutboundTurn, type OutboundTurns } from './create-turns.js'
export { limitedFetch } from './limited-fetch.js'
export type {
  LimitedFetchOptions,
  OutboundOptions,
  OutboundRequest,
  ResponseKind,
  RetryOptions,
  WaitProgress,
} from './options.js'
export { type HeadersLike, type Quota, type QuotaLimit, type QuotaSource, readQuota } from './quota.js'
