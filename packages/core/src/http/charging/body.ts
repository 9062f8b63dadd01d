import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpContext, RawResponse } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { problemReply } from '../responders/problem.js'
import type { Reply } from '../responders/responder.js'
import { disableResponse } from '../response/disabled-response.js'
import { handlerEnd } from '../response/handler-end.js'
import { CANCEL, http2Stream } from '../response/sent-bytes.js'

/** The bound of a request's body. */
export interface BodyOptions {
  /**
   * Largest body of a request, in bytes as received: 0 or more. Larger ones get 413, before they are read where
   * they announce their length. Limits of `content-bytes` reserve it where no length is
   * announced. Belongs in front of body parsers. A handler that runs when its body is cut off sees its request
   * aborted, and a response whose methods do nothing.
   */
  readonly max: number
  /**
   * Whether requests with a body that announce no length get 411 and are charged nothing, so that none reserves `max` of a
   * quota of bytes. @default false
   */
  readonly requireLength?: boolean
}

/** @throws SluiceError `INVALID_POLICY` */
export function bodyFor(ofPolicy: string, body: BodyOptions | undefined): Required<BodyOptions> | undefined {
  if (body === undefined) return undefined
  const where = `${ofPolicy}: body`
  knownOptions(where, body, ['max', 'requireLength'])
  const { max, requireLength = false } = body
  if (typeof requireLength !== 'boolean') invalidPolicy(where, 'requireLength', 'true or false', requireLength)
  return { max: wholeNumber(where, 'max', max, 0), requireLength }
}

/**
 * Counts the bytes of a request's body as they arrive, without reading them: a listener for `data` would start the
 * stream before its reader is there. Bytes that arrived before count as far as they have not been read, so the meter
 * belongs in front of what reads the body.
 */
export class BodyMeter {
  /** Bytes received so far, before any decompression. */
  received: number
  /** Whether it was there before the body was read: else the bytes that were read before are missing. */
  readonly sawAll: boolean
  #hasEnded: boolean
  #largest = Number.POSITIVE_INFINITY
  readonly #onEnd: (() => void)[] = []
  #onTooLarge: (() => void) | undefined

  /** The meter of a request: one for all its limiters. */
  static of(raw: IncomingMessage): BodyMeter {
    let meter = meters.get(raw)
    if (!meter) {
      meter = new BodyMeter(raw)
      meters.set(raw, meter)
    }
    return meter
  }

  private constructor(raw: IncomingMessage) {
    this.received = raw.readableLength
    this.sawAll = !raw.readableDidRead
    this.#hasEnded = raw.complete || raw.destroyed
    if (this.#hasEnded) return
    const push = raw.push
    // Node pushes every chunk of a body through here, for HTTP/1 and HTTP/2 alike.
    raw.push = (chunk, encoding) => {
      if (chunk === null) this.#end()
      else this.received += typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : chunk.length
      // Excess bytes are read and dropped until the response is out.
      this.#notifyIfTooLarge()
      return this.isTooLarge || push.call(raw, chunk, encoding)
    }
    raw.once('close', () => this.#end())
  }

  /** Calls back once, when the body has ended or was cut off; at once where that is so already. */
  whenEnded(listener: () => void): void {
    if (this.#hasEnded) listener()
    else this.#onEnd.push(listener)
  }

  /** Lets the reader have no byte more than `largest`; calls back once when there are more. */
  limitTo(largest: number, onTooLarge: () => void): void {
    this.#largest = Math.min(this.#largest, largest)
    // One response is enough.
    this.#onTooLarge ??= onTooLarge
    this.#notifyIfTooLarge()
  }

  /** Whether there are more bytes than the reader may have. */
  get isTooLarge(): boolean {
    return this.received > this.#largest
  }

  #notifyIfTooLarge(): void {
    if (!this.isTooLarge) return
    const notify = this.#onTooLarge
    this.#onTooLarge = undefined
    notify?.()
  }

  #end(): void {
    this.#hasEnded = true
    for (const listener of this.#onEnd.splice(0)) listener()
  }
}

const meters = new WeakMap<IncomingMessage, BodyMeter>()

/** The length of a body as the request announces it: undefined where it has a body and announces none. */
export function announcedLength(raw: IncomingMessage): number | undefined {
  const { 'content-length': length, 'transfer-encoding': transferEncoding } = raw.headers
  // A transfer coding overrides a length (RFC 9112 §6.3); Node refuses requests that give both.
  if (transferEncoding === undefined && length !== undefined) return Number(length)
  const isWithout =
    raw.httpVersionMajor === 2 ? http2Stream(raw)?.endAfterHeaders === true : transferEncoding === undefined
  return isWithout ? 0 : undefined
}

const TOO_LARGE = 413

export function tooLargeReply(raw: IncomingMessage, most: number): Reply & { readonly body: string } {
  return bodyProblem(raw, TOO_LARGE, 'Content Too Large', `The body of a request may have up to ${most} bytes.`)
}

/** To a request that announces no length where one is required (RFC 9110 §15.5.12). */
export function lengthRequiredReply(raw: IncomingMessage): Reply {
  return bodyProblem(raw, 411, 'Length Required', 'A request with a body has to announce its Content-Length.')
}

/**
 * Sends 413 in the middle of a body, in place of a handler that may be running: it sees its request aborted and
 * a response that does nothing. Where a response is under way already, the connection, or the stream of HTTP/2, ends.
 */
export function rejectBody<Request>(context: HttpContext<Request>, raw: IncomingMessage, most: number): void {
  const response = context.response as unknown as ServerResponse
  // A handler that reads the body sees it aborted; one that does not keeps running.
  const isUnread = raw.readableFlowing === null
  if (response.headersSent || response.destroyed || !sendTooLarge(response, raw, most)) {
    destroy(raw)
    http2Stream(raw)?.close(CANCEL)
    return
  }
  disableResponse(response)
  if (isUnread) {
    rejectedUnread.add(response)
    // From now on, and not only once the 413 is out: a client may take its time to read that.
    handlerEnd(response)
  }
  context.disableResponse?.()
}

/** Whether the response is on its way. */
function sendTooLarge(response: ServerResponse, raw: IncomingMessage, most: number): boolean {
  const { status, headers, body } = tooLargeReply(raw, most)
  const stream = http2Stream(raw)
  try {
    for (const name of response.getHeaderNames()) if (OF_CONTENT.test(name)) response.removeHeader(name)
    // HTTP/2 has no status message.
    if (!stream) response.statusMessage = ''
    response.writeHead(status, [...headers, ['Content-Length', String(Buffer.byteLength(body))]].flat())
    // Not by a callback of `end`, which middleware that wraps it may drop. Over HTTP/2 the response finishes only when
    // the client has sent all, or the stream is closed.
    const whenSent = () => {
      destroy(raw)
      // Not `close`, which leaves a stream without a reader open.
      if (stream) setTimeout(() => stream.destroy(), LINGER_MS).unref()
    }
    // Over HTTP/2, HEAD has no body to finish.
    if (stream?.writableFinished) process.nextTick(whenSent)
    else (stream ?? response).once('finish', whenSent)
    if (raw.method === 'HEAD') response.end()
    else response.end(body)
    return true
  } catch {
    // Middleware that watches headers may fail on these.
    return false
  }
}

/** Headers about what the handler was going to send. */
const OF_CONTENT = /^(content-(?!security-policy).*|etag|last-modified|transfer-encoding|trailer|accept-ranges)$/

/** Delays the reset, in ms: some clients drop a whole response that they have when a reset follows at once. */
const LINGER_MS = 100

/** Ends a request for its reader; on HTTP/1, the connection with it. */
function destroy(raw: IncomingMessage): void {
  // Node looks for a listener before it emits this error on HTTP/1, but not on HTTP/2.
  raw.on('error', () => {})
  raw.destroy(Object.assign(new Error('body too large'), { code: 'ERR_BODY_TOO_LARGE', status: TOO_LARGE }))
}

const rejectedUnread = new WeakSet<object>()

/** Whether 413 was sent in place of a handler that had not begun to read the body, so that it may still work. */
export function wasRejectedUnread(response: RawResponse): boolean {
  return rejectedUnread.has(response)
}

/** A refusal of a request for its body alone. A body that is not read keeps its connection from being used again, so that is closed. */
function bodyProblem(
  raw: IncomingMessage,
  status: 411 | 413,
  title: string,
  detail: string,
): Reply & { readonly body: string } {
  // HTTP/2 knows no such field.
  return problemReply(status, title, detail, raw.httpVersionMajor === 1 ? [['Connection', 'close']] : [])
}
