import type { Limiter } from '@sluice/core'

/** A limiter of any requests. */
// biome-ignore lint/suspicious/noExplicitAny: limiters of any requests
export type PeekableLimiter = Limiter<any>
