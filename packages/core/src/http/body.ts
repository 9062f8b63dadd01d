import type { IncomingMessage } from 'node:http'
import { bodyProblem } from './body-problem.js'
import type { HttpContext, RawResponse } from './context.js'
import type { Reply } from './responders/responder.js'

/** The raw request behind a context. */
export function rawRequest(context: HttpContext<never>): IncomingMessage | undefined {
  return context.response.req as IncomingMessage | undefined
}

/**
 * Counts the bytes of a request's body as they arrive, whoever reads them and whenever: a listener for
 * data would set the stream flowing before its reader is there. What was there before counts as far as it
 * has not been read yet, so a meter belongs in front of whatever reads the body.
 */
export class BodyMeter {
  /** Bytes received so far, before any decompression. */
  received: number
  /** Whether it was there before anybody read: else what was read before is missing. */
  readonly sawAll: boolean
  #hasEnded: boolean
  #largest = Number.POSITIVE_INFINITY
  readonly #onEnd: (() => void)[] = []
  readonly #onTooLarge: (() => void)[] = []

  /** The meter of a request: one, however many limiters ask for it. */
  static of(raw: IncomingMessage): BodyMeter {
    let meter = meters.get(raw)
    if (!meter) {
      meter = new BodyMeter(raw)
      meters.set(raw, meter)
    }
    return meter
  }

  /** Whether a request has been answered in the middle of its body. */
  static isCutOff(raw: IncomingMessage): boolean {
    return meters.get(raw)?.isTooLarge ?? false
  }

  private constructor(raw: IncomingMessage) {
    this.received = raw.readableLength
    this.sawAll = !raw.readableDidRead
    this.#hasEnded = raw.complete || raw.destroyed
    if (this.#hasEnded) return
    const push = raw.push
    // What Node hands on of a body passes through here, for HTTP/1 and HTTP/2 alike.
    raw.push = (chunk, encoding) => {
      if (chunk === null) this.#end()
      else this.received += typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : chunk.length
      // What is too much is read and thrown away until the answer is out.
      this.#tellIfTooLarge()
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
    this.#onTooLarge.push(onTooLarge)
    this.#tellIfTooLarge()
  }

  /** Whether there are more bytes than the reader may have. */
  get isTooLarge(): boolean {
    return this.received > this.#largest
  }

  #tellIfTooLarge(): void {
    if (!this.isTooLarge) return
    for (const tell of this.#onTooLarge.splice(0, 1)) {
      // One answer is enough.
      this.#onTooLarge.length = 0
      tell()
    }
  }

  #end(): void {
    this.#hasEnded = true
    for (const listener of this.#onEnd.splice(0)) listener()
  }
}

const meters = new WeakMap<IncomingMessage, BodyMeter>()

/** What a request says of the length of its body: undefined where it has one and does not say. */
export function announcedLength(raw: IncomingMessage): number | undefined {
  const { 'content-length': length, 'transfer-encoding': transferEncoding } = raw.headers
  // A transfer coding overrides a length (RFC 9112 §6.3); Node refuses requests that give both.
  if (transferEncoding === undefined && length !== undefined) return Number(length)
  const isWithout = raw.httpVersionMajor === 2 ? endsAfterHeaders(raw) : transferEncoding === undefined
  return isWithout ? 0 : undefined
}

function endsAfterHeaders(raw: IncomingMessage): boolean {
  return (raw as { stream?: { endAfterHeaders?: boolean } }).stream?.endAfterHeaders === true
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
 * Answers 413 in the middle of a body, in place of a handler that may be reading it: that one sees the
 * request aborted. Where an answer is under way already, the connection is all that can be ended.
 */
export function cutOff(context: HttpContext<never>, raw: IncomingMessage, most: number): void {
  const response = context.response as unknown as import('node:http').ServerResponse
  const abort = () =>
    raw.destroy(Object.assign(new Error('body too large'), { code: 'ERR_BODY_TOO_LARGE', status: TOO_LARGE }))
  if (response.headersSent || response.destroyed) {
    abort()
    return
  }
  const { status, headers, body } = tooLargeReply(raw, most)
  // One that reads the body sees it aborted; one that does not knows of nothing.
  if (raw.readableFlowing === null) answeredUnread.add(response)
  response.writeHead(status, [...headers, ['Content-Length', String(Buffer.byteLength(body))]].flat())
  response.end(body, abort)
}

const answeredUnread = new WeakSet<object>()

/** Whether 413 was sent in place of a handler that had not begun to read the body, so that it may still work. */
export function wasAnsweredUnread(response: RawResponse): boolean {
  return answeredUnread.has(response)
}
