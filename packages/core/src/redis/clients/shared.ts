import { setImmediate as nextTurn } from 'node:timers/promises'
import { freezes } from '../../util/freezes.js'
import type { Client, Connection, MasterListener, Wire, WireEvents } from './connection.js'

type DownListener = (error: Error | undefined) => void

interface Timeouts {
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
}

interface Waiting {
  readonly callback: () => void
  readonly onRefused: DownListener | undefined
}

/**
 * A silent server may be busy with other clients that start. A server that refuses or cannot be found is unavailable.
 */
const IS_SILENCE = /time(d )?out|ETIMEDOUT|no reply/i
/** The end of a connection. The next one may work, as after a failover or a pause of this process. */
const IS_END = /closed|ECONNRESET|EPIPE/i
/** Turns of the event loop after which clients know of an end that has arrived: mostly 2, sometimes more than 4. */
const TURNS_TO_END = 8
/** How late a timer is at most, in ms, in a process that was not paused. */
const ON_TIME_MS = 20

/**
 * A connection beside a user's client, for all stores on that client. It ends with the last store or with the client.
 */
class Shared implements WireEvents {
  readonly wire: Wire
  readonly #client: Client
  readonly #timeouts: Timeouts
  users = 0
  isClosed = false
  lastError: Error | undefined
  /** Deadline of the first connection; 0 once it is made or refused. */
  #firstUntil: number
  /** Deadline of a connection that replaces a lost one, or is tested; 0 while there is none to wait for. */
  #returnsUntil = 0
  #isUp = false
  /** The present test, until its end or that of the connection. */
  #test: object | undefined
  /** The freezes and pauses after which the connection was tested. */
  #freezes = freezes.count
  #pauses = freezes.pauses
  #timer: NodeJS.Timeout | undefined
  readonly #unwatch = freezes.watch()
  /** Present if the connection is known to be down, with the error. */
  down: { readonly error: Error | undefined } | undefined
  readonly downListeners = new Set<DownListener>()
  readonly masterListeners = new Set<MasterListener>()
  /** Masters that were connected, for listeners that are added later. */
  readonly masters = new Map<string, Parameters<MasterListener>[1]>()
  /** All waiting callers share one listener of the client. */
  #waiting = new Set<Waiting>()

  constructor(client: Client, timeouts: Timeouts, openWire: (events: WireEvents) => Wire) {
    this.#client = client
    this.#timeouts = timeouts
    this.#firstUntil = performance.now() + timeouts.connectTimeoutMs
    this.wire = openWire(this)
    client.once?.(this.wire.endEvent, this.end)
  }

  readonly ready = (): void => {
    this.#firstUntil = 0
    this.lastError = undefined
    this.down = undefined
    this.#isUp = true
    this.#proceed()
  }

  failed(error: Error): void {
    this.lastError = error
  }

  notConnected(): void {
    const error = this.lastError
    if (this.isClosed || this.wire.isReady()) return
    this.#test = undefined
    const text = error && `${error.message} ${codeOf(error)}`
    const isSilent = text !== undefined && IS_SILENCE.test(text)
    if (this.#isUp) {
      this.#isUp = false
      this.#noticeFreeze()
      // The client reconnects: mostly, only this connection was closed. A server that was silent stays so.
      if (this.#returnsUntil === 0 && !isSilent) this.#waitFor(this.#timeouts.timeoutMs)
      if (this.#returnsUntil > 0) return
    }
    if ((isSilent || !text) && performance.now() < this.#firstUntil) return
    // A wait for a lost connection has its own timer.
    if (this.#returnsUntil > 0 && (isSilent || !text || IS_END.test(text))) return
    this.#giveUp()
  }

  /** `ofStore`: the store's own deadline of the first connection. */
  startsUntil(ofStore: number): number {
    this.#noticeFreeze()
    // A test takes some turns of the event loop, which may be slow, and gives up by itself.
    const tested = this.#test ? performance.now() + this.#timeouts.connectTimeoutMs : 0
    return Math.max(this.#firstUntil === 0 ? 0 : ofStore, this.#returnsUntil, tested)
  }

  /**
   * A connection may have been closed without a sign of it while this process did not run, and a command on it would be
   * lost. All decisions wait for the result of a test, or for a new connection.
   */
  #noticeFreeze(): void {
    if (this.isClosed || this.#pauses === freezes.pauses) return
    this.#pauses = freezes.pauses
    const wasFrozen = this.#freezes !== freezes.count
    this.#freezes = freezes.count
    // An outage that lasts does not cost as much again with each freeze.
    if (wasFrozen) this.#waitFor(this.down ? this.#timeouts.timeoutMs : this.#timeouts.connectTimeoutMs)
    // A cluster has many connections, and connects them when they are needed.
    if (this.wire.isCluster || !this.wire.isReady() || (this.#test && !wasFrozen)) return
    this.#beginTest(wasFrozen)
  }

  async #beginTest(wasFrozen: boolean): Promise<void> {
    const test = {}
    this.#test = test
    for (let turn = 0; turn < TURNS_TO_END; turn++) await nextTurn()
    if (this.#test === test && wasFrozen && this.wire.isReady()) await this.#ping(test)
    if (this.#test === test && this.wire.isReady()) this.#proceed()
  }

  /**
   * Resolves with a reply, or with the end of the connection, which is reported by itself. The command is one that decisions
   * need: a user of Redis may have no right to PING.
   */
  async #ping(test: object): Promise<void> {
    const timer = setTimeout(() => {
      if (this.#test === test) this.wire.restart(new Error('no reply after a pause of this process'))
    }, this.#timeouts.timeoutMs).unref()
    await this.wire.send('', () => ['TIME'], { isLate: () => false, connects: () => {} }).catch(() => {})
    clearTimeout(timer)
  }

  /** Lets decisions wait for a connection, for at most `ms` from now. */
  #waitFor(ms: number): void {
    this.#returnsUntil = performance.now() + ms
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#late(), ms).unref()
  }

  #late(): void {
    const until = this.#returnsUntil
    this.#noticeFreeze()
    if (this.#returnsUntil !== until) return
    const lateMs = performance.now() - until
    if (lateMs > ON_TIME_MS) this.#waitFor(Math.min(lateMs, this.#timeouts.timeoutMs))
    else this.#giveUp()
  }

  #proceed(): void {
    clearTimeout(this.#timer)
    this.#returnsUntil = 0
    this.#test = undefined
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const { callback } of waiting) callback()
  }

  #giveUp(): void {
    clearTimeout(this.#timer)
    this.#firstUntil = 0
    this.#returnsUntil = 0
    const error = this.lastError
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
    if (!this.#test && this.wire.isReady()) callback()
    else this.#waiting.add(one)
    return () => this.#waiting.delete(one)
  }

  readonly end = (): void => {
    if (this.isClosed) return
    this.isClosed = true
    clearTimeout(this.#timer)
    this.#unwatch()
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
  const shared = known && !known.isClosed ? known : new Shared(client, { timeoutMs, connectTimeoutMs }, openWire)
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
    startsUntil: () => shared.startsUntil(startsUntil),
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
