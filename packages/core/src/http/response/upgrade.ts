import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isOver, type RawResponse } from '../../request/context.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { whenOver } from './when-over.js'

const upgrades = new WeakMap<RawResponse, Upgrade>()

/**
 * The upgrade that a request asks for, such as that to a WebSocket; undefined for any other request. What accepts an upgrade writes
 * the response to the socket, past Node's. The first call comes before the handler runs.
 */
export function upgradeOf(response: RawResponse): Upgrade | undefined {
  // Node sets it where it emits `upgrade` or `connect` instead of `request`.
  const isUpgrade = (response.req as { upgrade?: unknown } | undefined)?.upgrade === true
  return isUpgrade ? getOrInsert(upgrades, response, () => new Upgrade(response as never)) : undefined
}

/** The beginning of a final response. */
const STATUS_LINE = /^HTTP\/1\.1 (101|[2-5]\d\d)/

class Upgrade {
  /** The status of the response, once any code has written it. */
  status: number | undefined
  /** Whether the response has been written, or the server has ended the connection without one. */
  isAnswered = false
  readonly #response: ServerResponse
  readonly #socket: Socket
  readonly #listeners: (() => void)[] = []

  constructor(response: ServerResponse) {
    this.#response = response
    const { socket, ws } = response.req as IncomingMessage & { ws?: { readyState?: unknown } }
    this.#socket = socket
    // express-ws has accepted an upgrade before middleware runs.
    if (typeof ws?.readyState === 'number') this.#answer(101)
    else this.#watch()
  }

  /** Calls back once the upgrade is answered; at once if it is. */
  whenAnswered(listener: () => void): void {
    if (this.isAnswered) listener()
    else this.#listeners.push(listener)
  }

  #watch(): void {
    const socket = this.#socket
    const { destroy } = socket
    for (const name of ['write', 'end'] as const) {
      const method = socket[name] as (...args: unknown[]) => unknown
      socket[name] = (...args: unknown[]): never => {
        if (!this.isAnswered) this.#read(args[0])
        return method.apply(socket, args) as never
      }
    }
    socket.destroy = (error) => {
      // A refusal, or `ws` that finds the client gone. Node passes an error, and listeners for that error destroy the socket again.
      if (error === undefined && (!socket.destroyed || this.#response.destroyed)) this.#answer(undefined)
      return destroy.call(socket, error)
    }
  }

  #read(chunk: unknown): void {
    // The response to an earlier request of the connection.
    const { _httpMessage: writer } = this.#socket as { _httpMessage?: unknown }
    if (writer && writer !== this.#response) return
    const head = chunk instanceof Uint8Array ? Buffer.from(chunk.subarray(0, 12)).toString('latin1') : String(chunk)
    const [, status] = STATUS_LINE.exec(head) ?? []
    if (status !== undefined) this.#answer(Number(status))
  }

  #answer(status: number | undefined): void {
    if (this.isAnswered) return
    this.isAnswered = true
    this.status = status
    for (const listener of this.#listeners.splice(0)) listener()
  }
}

/** The status that a response was sent with, also past Node's response; undefined if none was. */
export function sentStatus(response: RawResponse): number | undefined {
  return upgradeOf(response)?.status ?? (response.headersSent ? response.statusCode : undefined)
}

/** Calls back once, when a response is sent, the client has left, or an upgrade has been accepted, whose socket stays open. */
export function whenDecided(response: RawResponse, listener: () => void): void {
  const upgrade = upgradeOf(response)
  if (!upgrade || isOver(response)) {
    whenOver(response, listener)
    return
  }
  let isDecided = false
  const decided = () => {
    if (isDecided) return
    isDecided = true
    listener()
  }
  whenOver(response, decided)
  upgrade.whenAnswered(decided)
}
