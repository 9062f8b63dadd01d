import type { ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { isOver, type RawResponse } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'

/** Responses behind others on a connection. */
const behindOthers = new WeakMap<Socket, Set<ServerResponse>>()

/** Streams of HEAD requests that have a listener. */
const heads = new WeakSet<ServerHttp2Stream>()

/**
 * Ensures that a response emits `close` when its client leaves. Node fails to emit it where the response is behind another on
 * its connection (HTTP/1 pipelining), or belongs to a HEAD request over HTTP/2. Permits held until their end would
 * stay held for ever.
 */
export function ensureCloseEvent(raw: RawResponse): void {
  const response = raw as unknown as ServerResponse
  // Over HTTP/1 in its turn on the connection, as nearly every response.
  if (Object.hasOwn(response, 'socket') && response.socket !== null) return
  const stream = propertyOf(raw as { stream?: ServerHttp2Stream & { headRequest?: boolean } }, 'stream')
  if (stream?.headRequest) emitCloseOnReset(response, stream)
  // A response without a socket is behind another, unless its request is made by hand.
  if (propertyOf(response, 'socket') !== null || !response.req?.socket?.once) return
  const { socket } = response.req
  if (socket.destroyed) {
    emitClose(response)
    return
  }
  let behind = behindOthers.get(socket)
  if (!behind) {
    behind = new Set()
    behindOthers.set(socket, behind)
    const responses = behind
    socket.once('close', () => responses.forEach(emitClose))
  }
  if (behind.has(response)) return
  behind.add(response)
  response.once('finish', () => behind.delete(response))
}

function emitCloseOnReset(response: ServerResponse, stream: ServerHttp2Stream): void {
  if (heads.has(stream)) return
  heads.add(stream)
  // Where the response has ended, Node emits the event.
  stream.once('close', () => response.writableEnded || response.emit('close'))
}

function emitClose(response: ServerResponse): void {
  if (isOver(response)) return
  response.destroy()
  response.emit('close')
}
