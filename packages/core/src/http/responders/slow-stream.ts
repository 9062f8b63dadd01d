import type { ServerResponse } from 'node:http'
import { listenTo } from '../response/shared-listener.js'

/** Slices leave this often: seldom enough to be cheap, often enough to look like a steady stream. */
const SLICE_EVERY_MS = 50

type Done = (error?: Error | null) => void

interface Piece {
  readonly bytes: Uint8Array
  readonly done: Done | undefined
}

/**
 * Slows a response down: after the first `after` bytes, `bytesPerSecond` leave, whichever code writes them
 * and however. Writers see an ordinary response: `write` says false when they should wait, `drain`
 * says when to go on, `end` ends it once all has left. Holds what was written and has not left, no
 * copies; a writer that minds `drain` has no more than one write held.
 */
export function slowDown(response: ServerResponse, bytesPerSecond: number, after: number): void {
  const write = response.write as (bytes: Uint8Array, done?: Done) => boolean
  const end = response.end as (done?: Done) => ServerResponse
  const emit = response.emit as (event: string | symbol, ...args: unknown[]) => boolean
  const sliceBytes = Math.max(1, Math.floor((bytesPerSecond * SLICE_EVERY_MS) / 1000))

  const pieces: Piece[] = []
  let free = after
  /** When the next slice may leave; 0 before the first. */
  let dueAt = 0
  let timer: NodeJS.Timeout | undefined
  let isFull = false
  let isAwaited = false
  let isEnding = false
  let isClosed = false
  let onEnd: Done | undefined

  /** Sends what may leave by now, and comes back for the rest. */
  function pump(): void {
    timer = undefined
    while (pieces.length > 0 && !isFull && !isClosed) {
      const now = performance.now()
      if (free <= 0 && now < dueAt) {
        timer = setTimeout(pump, Math.max(1, dueAt - now))
        return
      }
      send(now)
    }
    if (pieces.length > 0 || isClosed) return
    if (isEnding) end.call(response, onEnd)
    else if (isAwaited && !isFull) {
      isAwaited = false
      emit.call(response, 'drain')
    }
  }

  function send(now: number): void {
    const { bytes, done } = pieces[0] as Piece
    const most = free > 0 ? free : sliceBytes
    const slice = bytes.length > most ? bytes.subarray(0, most) : bytes
    const isLast = slice.length === bytes.length
    if (isLast) pieces.shift()
    else pieces[0] = { bytes: bytes.subarray(slice.length), done }
    if (free > 0) free -= slice.length
    // A late timer is caught up with, by a slice at most, and idle time is not saved up.
    else dueAt = Math.max(dueAt || now, now - SLICE_EVERY_MS) + (slice.length * 1000) / bytesPerSecond
    isFull = !write.call(response, slice, isLast ? done : undefined)
  }

  function accept(chunk: unknown, encoding: unknown, done: Done | undefined): boolean {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encodingOf(encoding)) : (chunk as Uint8Array)
    pieces.push({ bytes, done })
    if (timer === undefined) pump()
    return pieces.length === 0 && !isFull
  }

  function slowWrite(chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
    const done = callbackOf(encoding, callback)
    // Mistakes, and writes that are too late, are the response's own to complain about.
    if (isClosed || !isBytes(chunk)) return write.call(response, chunk as Uint8Array, done)
    if (isEnding) {
      const error = failure('ERR_STREAM_WRITE_AFTER_END', 'write after end')
      if (done) process.nextTick(done, error)
      // Without this slowness the response would be closed by now, and would say nothing.
      if (response.listenerCount('error') > 0) process.nextTick(() => emit.call(response, 'error', error))
      return false
    }
    if (!accept(chunk, encoding, done)) {
      isAwaited = true
      return false
    }
    return true
  }

  function slowEnd(chunk?: unknown, encoding?: unknown, callback?: unknown): ServerResponse {
    const done = typeof chunk === 'function' ? (chunk as Done) : callbackOf(encoding, callback)
    const last = typeof chunk === 'function' ? undefined : chunk
    if (isClosed || !(last === undefined || last === null || isBytes(last))) {
      return (end as (...args: unknown[]) => ServerResponse).call(response, last, encoding, done)
    }
    if (isEnding) {
      if (done) process.nextTick(done, failure('ERR_STREAM_ALREADY_FINISHED', 'end was called twice'))
      return response
    }
    isEnding = true
    onEnd = done
    if (isBytes(last) && last.length > 0) {
      knowLength(response, last, encoding)
      accept(last, encoding, undefined)
    } else if (timer === undefined) pump()
    return response
  }

  function slowEmit(event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'drain') return emit.call(response, event, ...args)
    // Of the response below: writers wait for what is held here as well.
    isFull = false
    if (timer === undefined) pump()
    return true
  }

  response.write = slowWrite as typeof response.write
  response.end = slowEnd as typeof response.end
  response.emit = slowEmit as typeof response.emit
  const ignoreClose = listenTo(response, 'close', () => {
    ignoreClose()
    isClosed = true
    clearTimeout(timer)
    for (const { done } of pieces.splice(0))
      done?.(failure('ERR_STREAM_DESTROYED', 'the response was closed before all was sent'))
  })
}

/** A body that ends with its first write has a length by which Node would have known it. */
function knowLength(response: ServerResponse, body: string | Uint8Array, encoding: unknown): void {
  if (response.headersSent || response.hasHeader('Content-Length') || response.hasHeader('Transfer-Encoding')) return
  if (response.statusCode === 204 || response.statusCode === 304) return
  const length = typeof body === 'string' ? Buffer.byteLength(body, encodingOf(encoding)) : body.length
  response.setHeader('Content-Length', length)
}

/** As Node's own streams say it. */
function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

function isBytes(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || chunk instanceof Uint8Array
}

function encodingOf(encoding: unknown): BufferEncoding {
  return typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'
}

function callbackOf(encoding: unknown, callback: unknown): Done | undefined {
  const done = typeof encoding === 'function' ? encoding : callback
  return typeof done === 'function' ? (done as Done) : undefined
}
