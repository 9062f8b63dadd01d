// The entry `@sluice/fetch/quota`: it imports nothing but its own folder.
export type { HeadersLike } from './quota/headers.js'
export type { Quota, QuotaLimit, QuotaSource } from './quota/quota-types.js'
export { readQuota } from './quota/read-quota.js'
