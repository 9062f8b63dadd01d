import calculateSlot from 'cluster-key-slot'

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

/** What a library does for a connection. */
export interface Wire
  extends Pick<Connection, 'isCluster' | 'keyPrefix' | 'nodeOf' | 'send' | 'isConnectedTo' | 'sendTo'> {
  /** By which the user's client tells of its end. */
  readonly endEvent: 'end' | 'disconnect'
  isReady(): boolean
  /** Ends it for good. */
  end(): void
}

/** What a wire reports. */
export interface WireEvents {
  readonly ready: () => void
  failed(error: Error): void
  /** An attempt to connect has failed, or the connection is gone: by the last failure. */
  notConnected(): void
  readonly master: MasterListener
}

/** What is made once for each client. */
export function perClient<T>(make: (client: Client) => T): (client: Client) => T {
  const made = new WeakMap<Client, T>()
  return (client) => {
    const known = made.get(client)
    if (known !== undefined) return known
    const one = make(client)
    made.set(client, one)
    return one
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
  return perClient((client) => {
    const sent = new Set<string>()
    client.on('connect', () => sent.clear())
    // Until then it refuses what it is given to send.
    client.on('ready', () => sent.clear())
    return sent
  })
}

/** What senders need of the masters of a cluster. */
interface Masters {
  /** Undefined where none is known. */
  ofSlot(slot: number): Client
  at(address: string): Client
  isReady(master: Client): boolean
  /** Resolves after one attempt to connect it. */
  connect(master: Client, wait: Wait): Promise<unknown>
  /** By the cluster, which finds the master by the key. */
  send(master: Client, key: string, command: (sent: Set<string>) => readonly string[], wait: Wait): Promise<unknown>
  /** By the master itself. */
  sendTo(master: Client, command: (sent: Set<string>) => readonly string[]): Promise<unknown>
}

export function clusterSenders(masters: Masters): Required<Pick<Connection, 'send' | 'isConnectedTo' | 'sendTo'>> {
  const connectedAt = (address: string) => {
    const master = masters.at(address)
    return master && masters.isReady(master) ? master : undefined
  }
  return {
    send: (key, command, wait) => {
      const master = masters.ofSlot(calculateSlot(key))
      if (!master || masters.isReady(master)) return masters.send(master, key, command, wait)
      // Each master is connected when it is first needed, and refuses what comes meanwhile.
      return masters.connect(master, wait).then(() => {
        if (wait.isLate()) throw new Error('its node was connected too late')
        return masters.send(master, key, command, wait)
      })
    },
    isConnectedTo: (address) => connectedAt(address) !== undefined,
    sendTo: (address, command) => {
      const master = connectedAt(address)
      return master ? masters.sendTo(master, command) : Promise.reject(new Error(`${address} is not connected`))
    },
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
