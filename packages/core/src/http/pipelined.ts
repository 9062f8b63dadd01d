import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isOver, type RawResponse } from './context.js'

/** Responses behind others on a connection. */
const behindOthers = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * Makes a response tell when its client leaves. Node does so by itself, unless the response stands behind
 * another on its connection (HTTP/1 pipelining): that one never emits `close`, and whatever is held for
 * it until it ends would be held for ever.
 */
export function tellOfLeaving(raw: RawResponse): void {
  const response = raw as unknown as ServerResponse
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

function leave(response: ServerResponse): void {
  if (isOver(response)) return
  response.destroy()
  response.emit('close')
}
