/** `@sluice/fastify/lean`: `rateLimit` as a hook, with some features alone, for those who bundle. */

import type { IdentityByKind } from '@sluice/core'
import { leanAdapter } from '@sluice/core/http'
import type { LeanAdapter, LeanFeature, LeanLimiter, NamesOf } from '@sluice/core/lean'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { limitingFastify } from './hook.js'

export * from '@sluice/core/features'

/** A hook for `onRequest` or any other up to `preHandler`, and the limiter behind it, with the methods of its features. */
export interface LeanRateLimitHook<Features extends readonly LeanFeature[]> {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  readonly limiter: LeanLimiter<FastifyRequest | string | IdentityByKind, NamesOf<Features>>
}

/** The functions that `withFeatures` returns, with these features. */
export type LeanFastify<Features extends readonly LeanFeature[]> = LeanAdapter<
  FastifyRequest,
  Features,
  LeanRateLimitHook<Features>
>

/**
 * Limiters with some features alone.
 *
 * @example const { rateLimit } = withFeatures(bans, outcomes)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(
  ...features: Features
): LeanFastify<Features> {
  return leanAdapter<FastifyRequest, Features, LeanRateLimitHook<Features>>(features, limitingFastify)
}
