/** What the store needs of a Redis client: to send a command whole, or not at all. */
export interface Connection {
  readonly isCluster: boolean
  /** What the user's client puts before every key. */
  readonly keyPrefix: string
  /** Whether it has ended for good: by `close`, or with the user's client. */
  isClosed(): boolean
  /** Calls back once, when it is ready; at once where it is. Returns how to call that off. */
  whenReady(callback: () => void): () => void
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
   * `key` decides the node in a cluster. Never sends twice. `command` is asked for at the very moment of sending, and
   * told which scripts that node has been sent, to which it may add.
   */
  send(key: string, command: (sent: Set<string>) => readonly string[], isLate: () => boolean): Promise<unknown>
  /** The last thing that went wrong, for messages. */
  lastError(): Error | undefined
  close(): void
}

export type MasterListener = (node: string, info: (section: string) => Promise<unknown>) => void

// biome-ignore lint/suspicious/noExplicitAny: structural types of clients that are not dependencies
export type Client = any

/** Callbacks that wait for a connection to be ready: one listener for all, however many wait. */
export function waitingRoom(isReady: () => boolean) {
  let waiting = new Set<() => void>()
  return {
    open(): void {
      const callbacks = waiting
      waiting = new Set()
      for (const callback of callbacks) callback()
    },
    whenReady(callback: () => void): () => void {
      if (isReady()) callback()
      else waiting.add(callback)
      return () => waiting.delete(callback)
    },
  }
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
      const settle = () => {
        waits.delete(client)
        for (const event of events) client.off(event, settle)
        resolve()
      }
      for (const event of events) client.on(event, settle)
    })
    waits.set(client, wait)
  }
  return wait
}

/** The scripts that a client has sent since it last connected: whoever answers it now has heard them all. */
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
