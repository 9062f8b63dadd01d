import type { HttpContext } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { propertyOf } from '../../util/property-of.js'
import type { Verdict } from '../../verdict/verdict.js'
import { releasePermits } from '../charging/permit-holder.js'
import { sentWaitMs } from '../headers/sent-wait.js'
import { unstored } from '../headers/unstored.js'
import { type HeaderField, type HeaderWriter, retryAfter } from '../headers/writer.js'
import { RateLimitError } from '../responders/rate-limit-error.js'
import { type Handover, isHandover, type NativeHandler, type Reply } from '../responders/responder.js'
import { isDisabled } from '../response/disabled-response.js'

/** The instructions of a guard to an adapter. */
export interface Outcome {
  /** Whether the handler runs. If it does not and there is no reply, nothing is left to send. */
  readonly proceed: boolean
  /** The verdict on the request; undefined when none was given, as for a skipped request. */
  readonly verdict: Verdict | undefined
  /** Fields to set on the response. They replace fields of the same name, and include the earlier values. */
  readonly headers: readonly HeaderField[]
  /** The response instead of the handler's. Its headers are among `headers`. */
  readonly reply: Reply | undefined
  /**
   * For the framework's error handler, once the headers are set: the refusal of a limiter with `respond: pass()`, or, with
   * `onInvalid: 'pass'`, a request that cannot be counted.
   */
  readonly error: (Error & { readonly status: number }) | undefined
  /** A handler to run instead of the route's, once the headers are set, and the status that it begins with. */
  readonly handler: HandlerCall | undefined
}

export interface HandlerCall {
  readonly handler: NativeHandler
  readonly status: number
}

/** No handler runs and nothing is sent: another limiter has already replied, or the client has left. */
const ENDED: Outcome = Object.freeze({
  proceed: false,
  verdict: undefined,
  headers: [],
  reply: undefined,
  error: undefined,
  handler: undefined,
})

/** No handler runs, and this limiter sends nothing. */
export function end(context: HttpContext<unknown>, verdict?: Verdict): Outcome {
  // Earlier limiters have no handler to wait for either. Those of calls that share the response may have.
  if (!propertyOf(context, 'sharesResponse')) void releasePermits(context.response)
  return verdict ? { ...ENDED, verdict } : ENDED
}

/**
 * Ends a request whose body a limiter has rejected meanwhile. To meter the body again would end the connection before the 413 is
 * out. A cost function that reads it would fail, or wait for ever.
 */
export function endIfAnswered({ context }: { readonly context: HttpContext<unknown> }): Outcome | undefined {
  return isDisabled(context.response) ? end(context) : undefined
}

export function isOutcome(turn: Verdict | Outcome): turn is Outcome {
  return Object.hasOwn(turn, 'proceed')
}

/** The handler runs, and the limiter adds nothing. */
export const SKIPPED: Outcome = Object.freeze({ ...ENDED, proceed: true })

/** The outcome of a request that gets a reply without a verdict. */
export function replyOutcome<Request>(reply: Reply, context: HttpContext<Request>): Outcome {
  return { ...ENDED, headers: replyHeaders(reply, context), reply: ownReply(reply) }
}

/** The outcome of a request that goes to the framework's error handler without a verdict. */
export function errorOutcome(error: NonNullable<Outcome['error']>, headers: readonly HeaderField[]): Outcome {
  return { ...ENDED, headers, error }
}

/** How a limiter shows its quota. */
interface ShownQuota {
  readonly writers: readonly HeaderWriter[]
  readonly maxRetryAfterMs: number
}

/** The outcome of a refused request: a responder's reply, or a response of the application. */
export function refusalOutcome<Request>(
  ending: Reply | Handover,
  context: HttpContext<Request>,
  verdict: Verdict,
  shown: ShownQuota,
): Outcome {
  const fields: HeaderField[] = []
  if (isHandover(ending) || ending.showsQuota) {
    fields.push(...quotaHeaders(shown, context, verdict))
    const waitMs = sentWaitMs(verdict)
    if (waitMs !== undefined) retryAfter(Math.min(waitMs, shown.maxRetryAfterMs), context, fields)
  }
  if (!isHandover(ending)) {
    return { ...ENDED, verdict, headers: [...fields, ...replyHeaders(ending, context)], reply: ownReply(ending) }
  }
  const headers = [...fields, ...unstored([], context)]
  const { to, status } = ending
  return to === 'error-handler'
    ? { ...ENDED, verdict, headers, error: new RateLimitError(status, verdict, Object.fromEntries(headers)) }
    : { ...ENDED, verdict, headers, handler: { handler: to, status } }
}

/** The fields that show the client its quota. */
export function quotaHeaders<Request>(
  { writers, maxRetryAfterMs }: ShownQuota,
  context: HttpContext<Request>,
  verdict: Verdict,
): HeaderField[] {
  const fields: HeaderField[] = []
  // A verdict makes the reports of its limits at the first look, which costs more than the rest of this function.
  if (writers.length === 0) return fields
  // A block has no quota to report. A count of this process alone, while the store is away, is not the quota.
  if (verdict.limits.length > 0 && verdict.kind === 'decided')
    for (const writer of writers) writer.write(verdict, context, fields, maxRetryAfterMs)
  return fields
}

/**
 * A reply's headers, which forbid shared caches to store it. With `Content-Length` where the body has a length and the reply
 * does not set the field.
 */
function replyHeaders<Request>(reply: Reply, context: HttpContext<Request>): readonly HeaderField[] {
  const { status, headers, body } = reply
  const sent = unstored(headers, context, propertyOf(reply, 'likeHandler'))
  const isSized = typeof body === 'string' || body instanceof Uint8Array
  if (!isSized || status === 204 || status === 304 || headers.some(([name]) => /^content-length$/i.test(name))) {
    return sent
  }
  return [...sent, ['Content-Length', String(Buffer.byteLength(body))]]
}

/** A reply that users may have written, with each field as its own property. */
function ownReply(reply: Reply): Reply {
  const { status, headers, body, showsQuota } = reply
  return { status, headers, body, showsQuota, likeHandler: propertyOf(reply, 'likeHandler') ?? false }
}

/** @throws SluiceError `INVALID_POLICY` where a responder returned another value */
export function checkReply(where: string, reply: unknown): void {
  const to = propertyOf((reply ?? {}) as Partial<Handover>, 'to')
  if (to === 'error-handler' || typeof to === 'function') return
  const { status, headers, body } = (reply ?? {}) as Partial<Reply>
  const isBody = typeof body === 'string' || body instanceof Uint8Array || typeof body?.pipe === 'function'
  if (Number.isInteger(status) && Array.isArray(headers) && isBody) return
  invalidPolicy(where, 'respond', 'a reply, "proceed" or "gone"', reply)
}
