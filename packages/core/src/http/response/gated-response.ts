import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { getOrInsert } from '../../util/get-or-insert.js'
import { listenTo } from './shared-listener.js'

/** Controls when bytes of a response may leave. */
export interface Gate {
  /** Bytes that may leave now. After 0 with bytes waiting, the gate calls the function that `addGate` returned when it opens. */
  room(): number
  /** Reports bytes that have left. `isLast`: the body ends with them. */
  passed(bytes: number, isLast: boolean): void
  /** The response is sent, or its client has left: no more bytes pass. */
  closed(): void
}

type Done = (error?: Error | null) => void

interface Piece {
  readonly bytes: Uint8Array
  readonly done: Done | undefined
}

/** The arguments of `write` and `end`, which leave out those they do not need. */
type Args = [chunk?: unknown, encoding?: unknown, callback?: unknown]

const gatedBy = new WeakMap<ServerResponse, GatedResponse>()

/**
 * Sends the body of a response through a gate, whichever code writes it. Writers see an ordinary response: `write` returns
 * false when they should wait, `drain` is the signal to continue, `end` ends the response once all bytes have left.
 *
 * Bytes that have not left are held without copies; a writer that respects `drain` has one write held at most. Bytes pass
 * several gates together. Returns the function to call when the gate opens.
 */
export function addGate(response: ServerResponse, gate: Gate): () => void {
  const gated = getOrInsert(gatedBy, response, () => new GatedResponse(response))
  return gated.add(gate)
}

class GatedResponse {
  readonly #response: ServerResponse
  /** The original methods of the response. */
  readonly #below: {
    readonly write: (...args: Args) => boolean
    readonly end: (...args: Args) => ServerResponse
  }
  readonly #gates: Gate[] = []
  readonly #pieces: Piece[] = []
  /** Whether a call of an original method is under way: calls within it pass. */
  #isPassing = false
  #isSending = false
  #isFull = false
  #isAwaited = false
  #isEnding = false
  #hasEnded = false
  #isClosed = false
  #onEnd: Done | undefined
  /** Emits `drain` to the writers. */
  readonly #writers = new EventEmitter()

  constructor(response: ServerResponse) {
    this.#response = response
    const { write, end } = response
    this.#below = { write, end } as never
    response.write = (...args: unknown[]) => this.#gatedWrite(...(args as Args))
    response.end = (...args: unknown[]) => this.#gatedEnd(...(args as Args))
    // Middleware in front of the limiter that compresses bodies (`compression`) puts a stream between writers and the response.
    // That stream emits the `drain` that writers wait for, so this class listens to it.
    response.on('drain', this.#drained)
    this.#listenForWriters()
    const ignoreClose = listenTo(response, 'close', () => {
      ignoreClose()
      this.#close()
    })
  }

  add(gate: Gate): () => void {
    this.#gates.push(gate)
    return () => this.#send()
  }

  #room(): number {
    let room = Number.POSITIVE_INFINITY
    for (const gate of this.#gates) room = Math.min(room, gate.room())
    return room
  }

  #passed(bytes: number, isLast: boolean): void {
    // A copy: a gate that closes may add another one.
    for (const gate of [...this.#gates]) gate.passed(bytes, isLast)
  }

  /** Sends the bytes that may leave now. A gate that opens calls this again. */
  #send(): void {
    if (this.#isSending) return
    this.#isSending = true
    while (this.#pieces.length > 0 && !this.#isFull && !this.#isClosed) {
      const room = this.#room()
      if (room <= 0) break
      this.#sendSlice(room)
    }
    this.#isSending = false
    if (this.#pieces.length > 0 || this.#isClosed) return
    if (this.#isEnding) this.#finish()
    else if (this.#isAwaited && !this.#isFull) {
      this.#isAwaited = false
      this.#writers.emit('drain')
    }
  }

  #sendSlice(room: number): void {
    const { bytes, done } = this.#pieces[0] as Piece
    const slice = bytes.length > room ? bytes.subarray(0, room) : bytes
    const isWhole = slice.length === bytes.length
    if (isWhole) this.#pieces.shift()
    else this.#pieces[0] = { bytes: bytes.subarray(slice.length), done }
    this.#isFull = !this.#passOn(() => this.#below.write.call(this.#response, slice, isWhole ? done : undefined))
    this.#passed(slice.length, false)
  }

  #finish(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#passed(0, true)
    this.#passOn(() => this.#below.end.call(this.#response, this.#onEnd))
  }

  #passOn<T>(call: () => T): T {
    this.#isPassing = true
    try {
      return call()
    } finally {
      this.#isPassing = false
    }
  }

  #hold(chunk: string | Uint8Array, encoding: BufferEncoding, done: Done | undefined): void {
    this.#pieces.push({ bytes: typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk, done })
    this.#send()
  }

  #gatedWrite(...args: Args): boolean {
    const response = this.#response
    const { chunk, encoding, done } = given(args)
    // The response itself reports errors and writes that come too late. HTTP/2 ends by a write.
    if (this.#isPassing || this.#isClosed || !isBytes(chunk) || (!this.#isEnding && hasNoBody(response))) {
      return this.#below.write.apply(response, args)
    }
    if (this.#isEnding) {
      const error = failure('ERR_STREAM_WRITE_AFTER_END', 'write after end')
      if (done) process.nextTick(done, error)
      // Without a gate the response would be closed by now, and would emit no error.
      if (response.listenerCount('error') > 0) process.nextTick(() => response.emit('error', error))
      return false
    }
    this.#hold(chunk, encoding, done)
    if (this.#pieces.length === 0 && !this.#isFull) return true
    this.#isAwaited = true
    return false
  }

  #gatedEnd(...args: Args): ServerResponse {
    const response = this.#response
    const { chunk: last, encoding, done } = given(args)
    if (this.#isPassing || this.#isClosed || !(last === undefined || last === null || isBytes(last))) {
      return this.#below.end.apply(response, args)
    }
    if (this.#isEnding) {
      if (done) process.nextTick(done, failure('ERR_STREAM_ALREADY_FINISHED', 'end was called twice'))
      return response
    }
    this.#isEnding = true
    const bytes = isBytes(last) && !hasNoBody(response) ? Buffer.byteLength(last, encoding) : 0
    if (this.#pieces.length === 0 && (bytes === 0 || this.#room() >= bytes)) {
      this.#hasEnded = true
      this.#passOn(() => this.#below.end.apply(response, args))
      this.#passed(bytes, true)
      return response
    }
    this.#onEnd = done
    if (bytes > 0) {
      knowLength(response, bytes)
      this.#hold(last as string | Uint8Array, encoding, undefined)
    } else this.#send()
    return response
  }

  /** The original response has room again. Writers also wait for the bytes held here. */
  readonly #drained = () => {
    this.#isFull = false
    this.#send()
  }

  /** Takes over the listeners of writers for `drain`, present and future. */
  #listenForWriters(): void {
    const response = this.#response
    const writers = this.#writers
    for (const name of ['on', 'addListener', 'prependListener', 'off', 'removeListener'] as const) {
      const below = response[name] as (event: string | symbol, listener: () => void) => unknown
      response[name] = ((event: string | symbol, listener: () => void) => {
        if (event === 'drain') writers[name](event, listener)
        else below.call(response, event, listener)
        return response
      }) as (typeof response)[typeof name]
    }
  }

  #close(): void {
    this.#isClosed = true
    for (const { done } of this.#pieces.splice(0))
      done?.(failure('ERR_STREAM_DESTROYED', 'the response was closed before all was sent'))
    for (const gate of this.#gates) gate.closed()
  }
}

/** Whether a written body is discarded (RFC 9110 §6.4.1). */
function hasNoBody({ req, statusCode }: ServerResponse): boolean {
  return req?.method === 'HEAD' || statusCode === 204 || statusCode === 304
}

/** Sets the length of a body that ends with its first write, as Node would. */
function knowLength(response: ServerResponse, bytes: number): void {
  if (response.headersSent || response.hasHeader('Content-Length') || response.hasHeader('Transfer-Encoding')) return
  response.setHeader('Content-Length', bytes)
}

/** An error in the form of Node's own streams. */
function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

function isBytes(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || chunk instanceof Uint8Array
}

function given(args: Args) {
  const [chunk, encoding] = args
  return {
    chunk: typeof chunk === 'function' ? undefined : chunk,
    encoding: (typeof encoding === 'string' ? encoding : 'utf8') as BufferEncoding,
    done: args.find((arg) => typeof arg === 'function') as Done | undefined,
  }
}
