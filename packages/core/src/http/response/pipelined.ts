import type { ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { isOver, type RawResponse } from '../../request/context.js'

/** Responses behind others on a connection. */
const behindOthers = new WeakMap<Socket, Set<ServerResponse>>()

/** Streams of HEAD requests that are listened to. */
const heads = new WeakSet<ServerHttp2Stream>()

/**
 * Makes a response tell when its client leaves. Node does so by itself, unless the response stands behind
 * another on its connection (HTTP/1 pipelining), or answers HEAD over HTTP/2: those never emit `close`, and
 * whatever is held for them until they end would be held for ever.
 */
export function tellOfLeaving(raw: RawResponse): void {
  const response = raw as unknown as ServerResponse
  const { stream } = raw as { stream?: ServerHttp2Stream & { headRequest?: boolean } }
  if (stream?.headRequest) tellOfReset(response, stream)
  // Only one that is behind has no socket yet.
  if (response.socket !== null || !response.req?.socket) return
  const { socket } = response.req
  if (socket.destroyed) {
    leave(response)
    return
  }
  let behind = behindOthers.get(socket)
  if (!behind) {
    behind = new Set()
    behindOthers.set(socket, behind)
    const responses = behind
    socket.once('close', () => responses.forEach(leave))
  }
  if (behind.has(response)) return
  behind.add(response)
  response.once('finish', () => behind.delete(response))
}

function tellOfReset(response: ServerResponse, stream: ServerHttp2Stream): void {
  if (heads.has(stream)) return
  heads.add(stream)
  // Node tells of those that have been answered.
  stream.once('close', () => response.writableEnded || response.emit('close'))
}

function leave(response: ServerResponse): void {
  if (isOver(response)) return
  response.destroy()
  response.emit('close')
}
