import type { Verdict } from '../../verdict/verdict.js'

/**
 * A refusal for the application's own error handler, passed by `pass()`. It has the status and the headers of the response
 * that `reject()` would send. Its message may be sent to the client. It has no stack trace, so that it costs little. Nothing
 * is broken: it is no `SluiceError`.
 */
export class RateLimitError extends Error {
  readonly code = 'RATE_LIMITED'
  /** 429, 503, or 403 for a list denial, as Express and Koa read it. */
  readonly status: number
  /** The same, as Fastify reads it. */
  readonly statusCode: number
  /** Read by Express and Koa: the message may be sent. */
  readonly expose = true
  /** Quota headers, `Retry-After` and `Cache-Control`. Koa removes those of the response before it sends an error. */
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

  /** A getter: loggers and `JSON.stringify` copy fields, which may reach clients. */
  get verdict(): Verdict {
    return this.#verdict
  }
}

// On the prototype, as in Node's own errors, so that it is no field of each error.
Object.defineProperty(RateLimitError.prototype, 'name', { value: 'RateLimitError', configurable: true, writable: true })

const MESSAGES = { 403: 'Forbidden', 429: 'Too Many Requests', 503: 'Service Unavailable' } as const

/** Sets `Error.stackTraceLimit`. Frozen intrinsics prevent that: errors have their traces then. */
function limitStackTo(frames: number): void {
  if (Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable) Error.stackTraceLimit = frames
}
