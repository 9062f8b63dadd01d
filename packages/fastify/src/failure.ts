import { SluiceError } from '@sluice/core'
import { asFailure } from '@sluice/core/http'

/**
 * The failure, for Fastify's error handler. By default that sends the message to the client, so names of policies and options
 * go into the cause, which Fastify's logger shows.
 */
export function withoutDetails(thrown: unknown): object {
  const failure = asFailure(thrown)
  if (!(failure instanceof SluiceError) || Object.hasOwn(failure, 'statusCode')) return failure
  return new SluiceError(failure.code, 'The rate limiter failed', { cause: failure })
}
