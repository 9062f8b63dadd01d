import type { Client, Connection, MasterListener, Wire, WireEvents } from './connection.js'

type DownListener = (error: Error | undefined) => void

interface Waiting {
  readonly callback: () => void
  readonly onRefused: DownListener | undefined
}

/** A server that says nothing yet may be busy with others that start; one that refuses, or cannot be found, is away. */
const IS_SILENCE = /time(d )?out|ETIMEDOUT|no reply/i

/** A connection beside a client of the user, for all stores on it. It ends with the last of them, or with the client. */
class Shared implements WireEvents {
  readonly wire: Wire
  readonly #client: Client
  users = 0
  isClosed = false
  lastError: Error | undefined
  /** Until when the first connection is waited for. */
  startsUntil: number
  /** Whether it is known to be down, and by what. */
  down: { readonly error: Error | undefined } | undefined
  readonly downListeners = new Set<DownListener>()
  readonly masterListeners = new Set<MasterListener>()
  /** Masters that have been connected, for listeners that come later. */
  readonly masters = new Map<string, Parameters<MasterListener>[1]>()
  /** One listener of the client for all, however many wait. */
  #waiting = new Set<Waiting>()

  constructor(client: Client, connectTimeoutMs: number, openWire: (events: WireEvents) => Wire) {
    this.#client = client
    this.startsUntil = performance.now() + connectTimeoutMs
    this.wire = openWire(this)
    client.once?.(this.wire.endEvent, this.end)
  }

  readonly ready = (): void => {
    this.startsUntil = 0
    this.down = undefined
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const { callback } of waiting) callback()
  }

  failed(error: Error): void {
    this.lastError = error
  }

  notConnected(): void {
    const error = this.lastError
    if (this.isClosed || this.wire.isReady()) return
    if (performance.now() < this.startsUntil && (!error || IS_SILENCE.test(`${error.message} ${codeOf(error)}`))) return
    this.startsUntil = 0
    for (const one of [...this.#waiting]) {
      if (!one.onRefused) continue
      this.#waiting.delete(one)
      one.onRefused(error)
    }
    // A cluster may be down in part.
    if (this.wire.isCluster) return
    this.down = { error }
    for (const listener of this.downListeners) listener(error)
  }

  readonly master: MasterListener = (node, info) => {
    this.masters.set(node, info)
    for (const listener of this.masterListeners) listener(node, info)
  }

  readonly whenReady: Connection['whenReady'] = (callback, onRefused) => {
    const one = { callback, onRefused }
    if (this.wire.isReady()) callback()
    else this.#waiting.add(one)
    return () => this.#waiting.delete(one)
  }

  readonly end = (): void => {
    if (this.isClosed) return
    this.isClosed = true
    this.#client.off?.(this.wire.endEvent, this.end)
    this.wire.end()
  }
}

/** By client, and by the timeout: with another one, a connection that is dead but open would be ended later. */
const open = new WeakMap<Client, Map<number, Shared>>()

/** A store's part in the one connection of a client: it closes by itself, and ends the connection with the last. */
export function sharedConnection(
  client: Client,
  timeoutMs: number,
  connectTimeoutMs: number,
  openWire: (events: WireEvents) => Wire,
): Connection {
  const byTimeout = open.get(client) ?? new Map<number, Shared>()
  const known = byTimeout.get(timeoutMs)
  const shared = known && !known.isClosed ? known : new Shared(client, connectTimeoutMs, openWire)
  byTimeout.set(timeoutMs, shared)
  open.set(client, byTimeout)
  const startsUntil = performance.now() + connectTimeoutMs
  const { downListeners, masterListeners } = shared
  const ends: (() => void)[] = []
  let isClosed = false
  shared.users++
  return {
    ...shared.wire,
    connectTimeoutMs,
    whenReady: shared.whenReady,
    startsUntil: () => (shared.startsUntil === 0 ? 0 : startsUntil),
    isClosed: () => isClosed || shared.isClosed,
    lastError: () => shared.lastError,
    onDown(callback) {
      downListeners.add(callback)
      ends.push(() => downListeners.delete(callback))
      // Later: the caller is still being made.
      setImmediate(() => shared.down && !isClosed && callback(shared.down.error))
    },
    onMaster(callback) {
      masterListeners.add(callback)
      ends.push(() => masterListeners.delete(callback))
      for (const [node, info] of shared.masters) setImmediate(() => !isClosed && callback(node, info))
    },
    close() {
      if (isClosed) return
      isClosed = true
      for (const end of ends) end()
      if (--shared.users > 0) return
      if (byTimeout.get(timeoutMs) === shared) byTimeout.delete(timeoutMs)
      shared.end()
    },
  }
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}
