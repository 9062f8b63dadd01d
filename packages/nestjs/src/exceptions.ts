import { STATUS_CODES } from 'node:http'
import { HttpException } from '@nestjs/common'
import { RateLimitError, type Verdict } from '@sluice/core'
import { propertyOf } from '@sluice/core/http'

/**
 * A refusal for Nest's exception filters: of a limiter with `respond: pass()`, and of a GraphQL field. The status is 429, or
 * 503 where nothing could decide, 403 for a client on a deny list, and 400 or 401 for one that cannot be identified.
 */
export class RateLimitException extends HttpException {
  readonly #verdict: Verdict | undefined

  /** @internal */
  constructor(status: number, verdict: Verdict | undefined, details: object = {}, cause?: unknown) {
    super({ statusCode: status, message: reasonPhrase(status), ...details }, status, { cause })
    this.#verdict = verdict
  }

  /** Undefined for a client that cannot be identified. A getter: loggers copy fields, which may reach clients. */
  get verdict(): Verdict | undefined {
    return this.#verdict
  }
}

export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? 'Error'
}

/** The time to wait, for clients that see no header fields: whole seconds, rounded up, at least 1. */
export function waitOf(verdict: Verdict | undefined): { readonly retryAfter?: number } {
  const retryAfterMs = verdict?.retryAfterMs
  return verdict?.allowed !== false || retryAfterMs === undefined
    ? {}
    : { retryAfter: Math.max(1, Math.ceil(retryAfterMs / 1000)) }
}

/** An error of a limiter for Nest's exception filters, which know refusals as an `HttpException`. */
export function asException(error: unknown): unknown {
  if (error instanceof RateLimitError) return new RateLimitException(error.status, error.verdict, {}, error)
  if (typeof error !== 'object' || error === null) return error
  const fault = error as { readonly expose?: unknown; readonly status?: unknown }
  const [expose, status] = [propertyOf(fault, 'expose'), propertyOf(fault, 'status')]
  // A client that cannot be identified, with `onInvalid: 'pass'`.
  if (expose === true && typeof status === 'number') return new RateLimitException(status, undefined, {}, error)
  return error
}
