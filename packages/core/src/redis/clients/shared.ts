import type { Client, Connection, MasterListener, Wire, WireEvents } from './connection.js'

type DownListener = (error: Error | undefined) => void

interface Waiting {
  readonly callback: () => void
  readonly onRefused: DownListener | undefined
}

/**
 * A silent server may be busy with other clients that start. A server that refuses or cannot be found is unavailable.
 */
const IS_SILENCE = /time(d )?out|ETIMEDOUT|no reply/i

/**
 * A connection beside a user's client, for all stores on that client. It ends with the last store or with the client.
 */
class Shared implements WireEvents {
  readonly wire: Wire
  readonly #client: Client
  users = 0
  isClosed = false
  lastError: Error | undefined
  /** Deadline of the first connection; 0 once it is made or refused. */
  startsUntil: number
  /** Present if the connection is known to be down, with the error. */
  down: { readonly error: Error | undefined } | undefined
  readonly downListeners = new Set<DownListener>()
  readonly masterListeners = new Set<MasterListener>()
  /** Masters that were connected, for listeners that are added later. */
  readonly masters = new Map<string, Parameters<MasterListener>[1]>()
  /** All waiting callers share one listener of the client. */
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

/** By client and timeout. The timeout determines when a connection that is dead but open is ended. */
const open = new WeakMap<Client, Map<number, Shared>>()

/** A store's share of a client's connection. Each store closes its own share; the last one ends the connection. */
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
      // Deferred, as the caller is still being constructed.
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
