import type { Verdict } from '../../verdict/verdict.js'

/**
 * A refusal, for the application's own error handler: what `pass()` hands over. It has the status and the headers of the
 * response that `reject()` would send, a message that may be sent to the client, and no stack trace, so that it costs
 * little. Nothing is broken: it is no `SluiceError`.
 */
export class RateLimitError extends Error {
  readonly code = 'RATE_LIMITED'
  /** 429, 503, or 403 for what a list denies, as Express and Koa read it. */
  readonly status: number
  /** The same, as Fastify reads it. */
  readonly statusCode: number
  /** As Express and Koa know it: the message may be sent. */
  readonly expose = true
  /** Quota headers, `Retry-After` and `Cache-Control`; Koa removes those that are on a response before it sends an error. */
  readonly headers: Readonly<Record<string, string>>
  readonly #verdict: Verdict

  /** @internal */
  constructor(status: 403 | 429 | 503, verdict: Verdict, headers: Readonly<Record<string, string>>) {
    const traced = Error.stackTraceLimit
    limitStackTo(0)
    super(MESSAGES[status])
    limitStackTo(traced)
    this.status = status
    this.statusCode = status
    this.headers = headers
    this.#verdict = verdict
  }

  /** Not among the fields that loggers and `JSON.stringify` copy, which may reach clients. */
  get verdict(): Verdict {
    return this.#verdict
  }
}

// On the prototype, as those of Node's own errors are: no field of each error.
Object.defineProperty(RateLimitError.prototype, 'name', { value: 'RateLimitError', configurable: true, writable: true })

const MESSAGES = { 403: 'Forbidden', 429: 'Too Many Requests', 503: 'Service Unavailable' } as const

/** Frozen where the process runs with frozen intrinsics: then errors have their traces. */
function limitStackTo(frames: number): void {
  if (Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable) Error.stackTraceLimit = frames
}
