import type { ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { RawResponse } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'

/** RFC 9113 §7. */
export const CANCEL = 8

/** The stream of a request or response over HTTP/2. */
export function http2Stream(raw: object): ServerHttp2Stream | undefined {
  return propertyOf(raw as { stream?: ServerHttp2Stream }, 'stream')
}

/**
 * A number that changes whenever bytes of a response leave while others wait; undefined while none wait. It has no
 * meaning by itself: compare it with an earlier one.
 */
export function sentBytes(response: RawResponse): number | undefined {
  const waiting = (response as unknown as ServerResponse).writableLength
  if (!waiting) return undefined
  const stream = http2Stream(response)
  return stream ? acceptedBytes(stream) - waiting : sentBySocket((response as unknown as ServerResponse).req.socket)
}

/**
 * Bytes sent by a socket's handle. The socket's own `bytesWritten` and `writableLength` count a write as a whole when it begins
 * and ends, which may take minutes for a large body. The handle counts its parts; Node's socket timeouts use it as well.
 */
function sentBySocket(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { bytesWritten?: number; writeQueueSize?: number } | null }
  const { bytesWritten, writeQueueSize } = handle ?? {}
  return bytesWritten === undefined || writeQueueSize === undefined
    ? socket.bytesWritten - socket.writableLength
    : bytesWritten - writeQueueSize
}

const accepted = new WeakMap<ServerHttp2Stream, { bytes: number }>()

/** Bytes written to a stream since the first call. HTTP/2 streams do not count them. */
function acceptedBytes(stream: ServerHttp2Stream): number {
  let count = accepted.get(stream)
  if (!count) {
    count = { bytes: 0 }
    accepted.set(stream, count)
    countWrites(stream, count)
  }
  return count.bytes
}

function countWrites(stream: ServerHttp2Stream, count: { bytes: number }): void {
  const write = stream.write as (...args: unknown[]) => boolean
  stream.write = (...args: unknown[]) => {
    const before = stream.writableLength
    const goesOn = write.apply(stream, args)
    count.bytes += stream.writableLength - before
    return goesOn
  }
}

/** Aborts a response in the middle: its stream over HTTP/2, else its connection. */
export function abortResponse(response: RawResponse): void {
  const stream = http2Stream(response)
  if (!stream) {
    const { socket } = (response as unknown as ServerResponse).req
    // A body that ends with its connection would look complete.
    if (endsWithConnection(response as unknown as ServerResponse)) resetOnDestroy(socket)
    socket.destroy()
    return
  }
  stream.close(CANCEL)
  stream.destroy()
}

/** Sends a reset. `resetAndDestroy` would first end the socket as usual, and with writes under way clients see only that. */
function resetOnDestroy(socket: Socket): void {
  const { _handle: handle } = socket as { _handle?: { reset?: unknown } | null }
  if (typeof handle?.reset === 'function') (socket as { resetAndClosing?: boolean }).resetAndClosing = true
}

/** Whether only the connection's end marks the body's end: it has neither a length nor a last chunk. */
function endsWithConnection(response: ServerResponse): boolean {
  const { chunkedEncoding, _header: header } = response as { chunkedEncoding?: boolean; _header?: string | null }
  return chunkedEncoding !== true && !/^content-length:/im.test(header ?? '')
}
