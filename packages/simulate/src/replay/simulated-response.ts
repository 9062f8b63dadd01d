import type { RawResponse } from '@sluice/core/http'
import type { Timing } from '@sluice/core/internal'

type EndEvent = 'finish' | 'close' | 'drain'

/** Bytes that are written at once, as streams of files do. */
const PIECE = Buffer.alloc(64 * 1024)

/** The response to a request of a log: nothing is sent, but those who listen for its end are told. */
export class SimulatedResponse implements RawResponse {
  statusCode = 200
  headersSent = false
  writableFinished = false
  destroyed = false
  readonly req: object
  readonly timing: Timing
  readonly #listeners: { [Event in EndEvent]: (() => void)[] } = { finish: [], close: [], drain: [] }

  /** `method` and `bodyBytes`: of the request. */
  constructor(method: string, bodyBytes: number | undefined, timing: Timing) {
    this.timing = timing
    this.req = {
      method,
      httpVersionMajor: 1,
      headers: bodyBytes === undefined ? {} : { 'content-length': String(bodyBytes) },
      // The body has arrived.
      complete: true,
      readableLength: bodyBytes ?? 0,
      readableDidRead: false,
      socket: { destroy: () => this.#leave(), destroyed: false, bytesWritten: 0, writableLength: 0 },
    }
  }

  on(event: EndEvent, listener: () => void): this {
    this.#listeners[event]?.push(listener)
    return this
  }

  removeListener(event: EndEvent, listener: () => void): this {
    const listeners = this.#listeners[event]
    const at = listeners?.lastIndexOf(listener) ?? -1
    if (at >= 0) listeners.splice(at, 1)
    return this
  }

  addListener = this.on
  prependListener = this.on
  off = this.removeListener

  listenerCount(): number {
    return 0
  }

  hasHeader(): boolean {
    return true
  }

  emit(event: EndEvent): void {
    for (const listener of [...this.#listeners[event]]) listener()
  }

  /** Gates of the core replace `write` and `end`, and call these. */
  write(_bytes: Uint8Array): boolean {
    return true
  }

  end(): this {
    if (this.destroyed) return this
    this.writableFinished = true
    this.emit('finish')
    this.emit('close')
    return this
  }

  /**
   * The handler responds, with so many bytes. They leave at once, unless something slows them down. A status of 499, or none, is
   * that of a client that has left before.
   */
  respond(status: number | undefined, bytes: number): void {
    if (this.destroyed || this.writableFinished) return
    if (status === undefined || status === LEFT) {
      this.#leave()
      // The handler is done as well, which permits wait for.
      this.end()
      return
    }
    this.statusCode = status
    this.headersSent = true
    if (Object.hasOwn(this, 'write')) this.#send(bytes)
    else this.end()
  }

  #send(bytes: number): void {
    for (let left = bytes; left > 0; ) {
      const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE
      left -= piece.length
      if (this.write(piece)) continue
      const goOn = () => {
        this.removeListener('drain', goOn)
        this.#send(left)
      }
      this.on('drain', goOn)
      return
    }
    this.end()
  }

  #leave(): void {
    if (this.destroyed || this.writableFinished) return
    this.destroyed = true
    this.emit('close')
  }
}

/** As nginx writes it. */
export const LEFT = 499
