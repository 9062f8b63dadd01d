/** What the store needs of a Redis client: to send a command whole, or not at all. */
export interface Connection {
  readonly isCluster: boolean
  /** What the user's client puts before every key. */
  readonly keyPrefix: string
  /** Whether it has ended for good: by `close`, or with the user's client. */
  isClosed(): boolean
  /**
   * Calls back once, when it is ready; at once where it is. Or calls `onRefused`, if there is one, where the first connection
   * is refused. Returns how to call that off.
   */
  whenReady(callback: () => void, onRefused?: (error: Error | undefined) => void): () => void
  /** How long a first connection may take, also that to a node of a cluster. */
  readonly connectTimeoutMs: number
  /** Until when the first connection is waited for, by the performance clock; 0 once it was made or refused. */
  startsUntil(): number
  /** Calls back whenever the connection is found to be down, the first attempt included. Never of a cluster, which may be down in part. */
  onDown(callback: (error: Error | undefined) => void): void
  /**
   * Calls back whenever a master is connected, in a cluster one that decisions need: with its address, and what asks it for
   * a section of INFO.
   */
  onMaster(callback: MasterListener): void
  /** The address of the master that keeps a slot, as far as it is known; always the same without a cluster. */
  nodeOf(slot: number): string
  /**
   * Sends once its node is connected, unless `isLate` by then; rejects if that is not possible. Strings come back as bytes.
   * `key` decides the node in a cluster. Never sends twice. `command` is called at the moment of sending, with the
   * set of scripts that this node has been sent, to which it may add.
   */
  send(key: string, command: (sent: Set<string>) => readonly string[], wait: Wait): Promise<unknown>
  /** Of a cluster, whether a master is connected, so that `sendTo` can send. */
  isConnectedTo?(node: string): boolean
  /**
   * Sends to the connected master at this address, whatever its slots are; otherwise as `send`. Rejects if it is not
   * connected any more. Only of a cluster.
   */
  sendTo?(node: string, command: (sent: Set<string>) => readonly string[]): Promise<unknown>
  /** The last thing that went wrong, for messages. */
  lastError(): Error | undefined
  close(): void
}

/** What waits to be sent. */
export interface Wait {
  isLate(): boolean
  /** It has to wait for the first connection to a node of a cluster. */
  connects(): void
}

export type MasterListener = (node: string, info: (section: string) => Promise<unknown>) => void

// biome-ignore lint/suspicious/noExplicitAny: structural types of clients that are not dependencies
export type Client = any

interface Waiting {
  readonly callback: () => void
  readonly onRefused: ((error: Error | undefined) => void) | undefined
}

/** A server that says nothing yet may be busy with others that start; one that refuses, or cannot be found, is away. */
const IS_SILENCE = /time(d )?out|ETIMEDOUT|no reply/i

/**
 * Callbacks that wait for a connection to be ready: one listener for all, however many wait. For the first connection there
 * is `connectTimeoutMs` from now on.
 */
export function waitingRoom(isReady: () => boolean, connectTimeoutMs: number) {
  let waiting = new Set<Waiting>()
  let startsUntil = performance.now() + connectTimeoutMs
  return {
    open(): void {
      startsUntil = 0
      const callbacks = waiting
      waiting = new Set()
      for (const { callback } of callbacks) callback()
    },
    /** Called with every failed attempt to connect. Returns whether there is still reason to wait for the first. */
    refused(error: Error | undefined): boolean {
      if (performance.now() < startsUntil && (!error || IS_SILENCE.test(`${error.message} ${codeOf(error)}`)))
        return true
      startsUntil = 0
      for (const one of [...waiting]) {
        if (!one.onRefused) continue
        waiting.delete(one)
        one.onRefused(error)
      }
      return false
    },
    startsUntil: () => startsUntil,
    whenReady(callback: () => void, onRefused?: (error: Error | undefined) => void): () => void {
      const one = { callback, onRefused }
      if (isReady()) callback()
      else waiting.add(one)
      return () => waiting.delete(one)
    },
  }
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

const waits = new WeakMap<Client, Promise<void>>()

/**
 * Resolves at the next of these events of a client, the same ones whenever it is asked. One wait for all: a burst at the
 * start must not hang a listener each on it.
 */
export function nextOf(client: Client, events: readonly string[]): Promise<void> {
  let wait = waits.get(client)
  if (!wait) {
    wait = new Promise<void>((resolve) => {
      const finish = () => {
        waits.delete(client)
        for (const event of events) client.off(event, finish)
        resolve()
      }
      for (const event of events) client.on(event, finish)
    })
    waits.set(client, wait)
  }
  return wait
}

/** The scripts that a client has sent since it last connected: the server that replies now has got them all. */
export function scriptsSent(): (client: Client) => Set<string> {
  const byClient = new WeakMap<Client, Set<string>>()
  return (client) => {
    const known = byClient.get(client)
    if (known) return known
    const sent = new Set<string>()
    byClient.set(client, sent)
    client.on('connect', () => sent.clear())
    // Until then it refuses what it is given to send.
    client.on('ready', () => sent.clear())
    return sent
  }
}

/** How long to wait before the `attempt`-th try, from 1, to connect anew. */
export function reconnectAfterMs(attempt: number): number {
  return Math.min(attempt * 50, 500)
}

/** Where a client connects to, by its options, for people to read. */
export function addressOf({ path, host = 'localhost', port = 6379 }: Client): string {
  return path ?? `${host}:${port}`
}
