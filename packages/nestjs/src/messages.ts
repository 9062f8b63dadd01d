import { createRequire } from 'node:module'
import { SluiceError } from '@sluice/core'
import { asException, RateLimitException, reasonPhrase, waitOf } from './exceptions.js'
import { refuseOptions } from './graphql.js'
import type { NestGuard } from './http.js'
import type { NestRateLimitOptions } from './options.js'

/**
 * A message has no status, no end that a guard sees, and no object for a verdict, as its socket is that of others.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkForMessages(options: NestRateLimitOptions, guard: NestGuard): void {
  checkForSocket('messages, whose end no guard sees', options, guard)
  if (!guard.responders?.degrades) return
  throw new SluiceError(
    'INVALID_POLICY',
    `policy "${guard.limiter.name}": respond: expected no degrade() for messages, whose handlers see no verdict: use reject(), in ` +
      'a @RateLimit where degrade() is of the module',
  )
}

/**
 * The same for a GraphQL operation over a WebSocket, which has a request for the verdict.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkForSubscriptions(options: NestRateLimitOptions, guard: NestGuard): void {
  checkForSocket('operations over a WebSocket, whose end no guard sees', options, guard)
}

function checkForSocket(of: string, options: NestRateLimitOptions, guard: NestGuard): void {
  const { limiter, holdsPermits } = guard
  refuseOptions(of, options, guard)
  const option = options.policies ? 'policies' : holdsPermits ? 'concurrency' : undefined
  if (option) throw new SluiceError('INVALID_POLICY', `policy "${limiter.name}": ${option}: expected none for ${of}`)
}

/** An error of a limiter for a message: a refusal is a `WsException`, which Nest sends as the event `exception`. */
export async function asMessageError(error: unknown): Promise<unknown> {
  const known = asException(error)
  if (!(known instanceof RateLimitException)) return error
  const { WsException } = await websockets()
  const statusCode = known.getStatus()
  return new WsException({ status: 'error', message: reasonPhrase(statusCode), statusCode, ...waitOf(known.verdict) })
}

/**
 * Of the copy that Nest has: it knows its errors by `instanceof`, and a bundler puts what is imported into the bundle. Only
 * gateways have the package. Under Jest a program in CommonJS has no `import()`.
 */
async function websockets(): Promise<typeof import('@nestjs/websockets')> {
  try {
    return await import('@nestjs/websockets')
  } catch {
    return createRequire(import.meta.url ?? __filename)('@nestjs/websockets')
  }
}

declare const __filename: string
