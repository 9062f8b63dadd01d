// The entry `@sluice/fetch/undici`.
export type { LimitedInterceptor } from './undici/limited.js'
export { limited } from './undici/limited.js'
