import type { IncomingMessage, ServerResponse } from 'node:http'
import { unstored } from '../../http/headers/unstored.js'
import { problemReply } from '../../http/responders/problem.js'
import type { Reply } from '../../http/responders/responder.js'
import { disableResponse } from '../../http/response/disabled-response.js'
import { watchHandler } from '../../http/response/handler-end.js'
import { noteRejectedUnread } from '../../http/response/rejected-unread.js'
import { CANCEL, http2Stream } from '../../http/response/sent-bytes.js'
import { type HttpContext, headerText } from '../../request/context.js'
import { invalidPolicy } from '../../util/errors.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { isPropertyOf } from '../../util/property-of.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'

/** The bound of a request's body. */
export interface BodyOptions {
  /**
   * Maximum size of a request's body, in bytes as received: 0 or more.
   *
   * Larger bodies get 413. Those that announce their length get it before they are read. Limits of `content-bytes`
   * reserve `max` where no length is announced. The limiter belongs in front of body parsers. A handler that runs when
   * its body is cut off sees its request aborted, and a response whose methods do nothing.
   */
  readonly max: number
  /**
   * Whether requests with a body of unannounced length get 411 and are charged nothing.
   *
   * None of them reserves `max` of a quota of bytes then.
   * @default false
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
 * stream before its reader is there. Bytes that arrived earlier count only while they are unread, so the meter
 * belongs in front of the code that reads the body.
 */
export class BodyMeter {
  /** Bytes received so far, before any decompression. */
  received: number
  /** Whether the meter existed before the body was read. Otherwise the bytes read earlier are missing. */
  readonly sawAll: boolean
  #hasEnded: boolean
  #largest = Number.POSITIVE_INFINITY
  readonly #onEnd: (() => void)[] = []
  #onTooLarge: (() => void) | undefined

  /** The meter of a request, shared by all its limiters. */
  static of(raw: IncomingMessage): BodyMeter {
    return getOrInsert(meters, raw, () => new BodyMeter(raw))
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

  /** Calls back once, when the body has ended or was cut off; at once if it has already. */
  whenEnded(listener: () => void): void {
    if (this.#hasEnded) listener()
    else this.#onEnd.push(listener)
  }

  /** Passes at most `largest` bytes to the reader. Calls back once when there are more. */
  limitTo(largest: number, onTooLarge: () => void): void {
    this.#largest = Math.min(this.#largest, largest)
    // Only one response is sent.
    this.#onTooLarge ??= onTooLarge
    this.#notifyIfTooLarge()
  }

  /** Whether more bytes arrived than the reader may have. */
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

/** The announced length of a request's body; undefined if it has a body of unannounced length. */
export function announcedLength(raw: IncomingMessage): number | undefined {
  const { 'content-length': length, 'transfer-encoding': transferEncoding } = raw.headers
  // A transfer coding overrides a length (RFC 9112 §6.3); Node refuses requests that give both.
  if (transferEncoding === undefined && length !== undefined) return Number(length)
  const isWithout =
    raw.httpVersionMajor === 2 ? http2Stream(raw)?.endAfterHeaders === true : transferEncoding === undefined
  return isWithout ? 0 : undefined
}

const TOO_LARGE = 413

export function tooLargeReply(raw: IncomingMessage, max: number): Reply & { readonly body: string } {
  return bodyProblem(raw, TOO_LARGE, 'Content Too Large', `The body of a request may have up to ${max} bytes.`)
}

/** The reply to a request without a length where one is required (RFC 9110 §15.5.12). */
export function lengthRequiredReply(raw: IncomingMessage): Reply {
  return bodyProblem(raw, 411, 'Length Required', 'A request with a body has to announce its Content-Length.')
}

/**
 * Sends 413 in the middle of a body, in place of a handler that may be running. The handler sees its request aborted and
 * a response that does nothing. Where a response is under way already, the connection (over HTTP/2 its stream) ends.
 */
export function rejectBody<Request>(context: HttpContext<Request>, raw: IncomingMessage, max: number): void {
  const response = context.response as unknown as ServerResponse
  // A handler that reads the body sees it aborted; one that does not keeps running.
  const isUnread = raw.readableFlowing === null
  if (response.headersSent || response.destroyed || !sendTooLarge(response, raw, max)) {
    destroy(raw)
    http2Stream(raw)?.close(CANCEL)
    return
  }
  disableResponse(response)
  if (isUnread) {
    noteRejectedUnread(response)
    // Watched before the 413 has been sent: a client may take its time to read it.
    watchHandler(response).wasReplaced()
  }
  if (isPropertyOf(context, 'disableResponse')) context.disableResponse?.()
}

/** Returns whether the response is on its way. */
function sendTooLarge(response: ServerResponse, raw: IncomingMessage, max: number): boolean {
  const { status, headers, body } = tooLargeReply(raw, max)
  const stream = http2Stream(raw)
  try {
    for (const name of response.getHeaderNames()) if (OF_CONTENT.test(name)) response.removeHeader(name)
    // HTTP/2 has no status message.
    if (!stream) response.statusMessage = ''
    const sent = unstored(headers, { getResponseHeader: (name) => headerText(response.getHeader(name)) })
    response.writeHead(status, [...sent, ['Content-Length', String(Buffer.byteLength(body))]].flat())
    // Not a callback of `end`, which middleware that wraps it may drop. Over HTTP/2 the response finishes only when
    // the client has sent its whole body, or the stream is closed.
    const whenSent = () => {
      destroy(raw)
      // `close` would leave a stream without a reader open.
      if (stream) setTimeout(() => stream.destroy(), LINGER_MS).unref()
    }
    // Over HTTP/2, HEAD has no body to finish.
    if (stream?.writableFinished) process.nextTick(whenSent)
    else (stream ?? response).once('finish', whenSent)
    if (raw.method === 'HEAD') response.end()
    else response.end(body)
    return true
  } catch {
    // Middleware that inspects headers may fail on these.
    return false
  }
}

/** Headers that describe the handler's own response. */
const OF_CONTENT = /^(content-(?!security-policy).*|etag|last-modified|transfer-encoding|trailer|accept-ranges)$/

/** Delay of the reset, in ms: some clients discard a complete response when a reset follows at once. */
const LINGER_MS = 100

/** Destroys a request for its reader; on HTTP/1, its connection too. */
function destroy(raw: IncomingMessage): void {
  // Node looks for a listener before it emits this error on HTTP/1, but not on HTTP/2.
  raw.on('error', () => {})
  raw.destroy(Object.assign(new Error('body too large'), { code: 'ERR_BODY_TOO_LARGE', status: TOO_LARGE }))
}

/** The refusal of a request because of its body. An unread body prevents reuse of its connection, so that is closed. */
function bodyProblem(
  raw: IncomingMessage,
  status: 411 | 413,
  title: string,
  detail: string,
): Reply & { readonly body: string } {
  // HTTP/2 has no such field.
  return problemReply(status, title, detail, raw.httpVersionMajor === 1 ? [['Connection', 'close']] : [])
}
