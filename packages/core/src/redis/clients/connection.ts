import calculateSlot from 'cluster-key-slot'

/** A connection to Redis, which sends a command completely or not at all. */
export interface Connection {
  readonly isCluster: boolean
  /** The prefix that the user's client puts before every key. */
  readonly keyPrefix: string
  /** Whether it has ended for good: by `close`, or with the user's client. */
  isClosed(): boolean
  /**
   * Calls back once, when the connection is ready, or at once if it is. If the connection is refused, or not made in
   * time, calls `onRefused` instead, if given. Returns a function that cancels the call.
   */
  whenReady(callback: () => void, onRefused?: (error: Error | undefined) => void): () => void
  /** How long a first connection may take, including that to a node of a cluster. */
  readonly connectTimeoutMs: number
  /**
   * Deadline of the connection that commands wait for, by the performance clock: the first one, one that replaces a
   * lost one, or one that is tested after a pause. 0 once it is made or refused. Call it before `whenReady`: it
   * notices pauses.
   */
  startsUntil(): number
  /**
   * Calls back whenever the connection is found to be down, including the first attempt. Never for a cluster, which may
   * be down in part.
   */
  onDown(callback: (error: Error | undefined) => void): void
  /**
   * Calls back whenever a master is connected; in a cluster, a master that decisions need. The arguments are its
   * address and a function that requests a section of INFO.
   */
  onMaster(callback: MasterListener): void
  /** The known address of a slot's master; always the same without a cluster. */
  nodeOf(slot: number): string
  /**
   * Sends once the node is connected, unless `isLate` by then; rejects if that is impossible. Never sends twice.
   * Strings in replies are bytes. In a cluster, `key` determines the node. `command` is called at the moment of
   * sending, with the set of scripts that were sent to this node; it may add to the set.
   */
  send(key: string, command: (sent: Set<string>) => readonly string[], wait: Wait): Promise<unknown>
  /** Whether a master is connected, so that `sendTo` can send. Only for a cluster. */
  isConnectedTo?(node: string): boolean
  /**
   * Sends to the connected master at this address, whatever its slots; otherwise like `send`. Rejects if the master is
   * not connected. Only for a cluster.
   */
  sendTo?(node: string, command: (sent: Set<string>) => readonly string[]): Promise<unknown>
  /** The last error, for messages. */
  lastError(): Error | undefined
  close(): void
}

/** A command that waits to be sent. */
export interface Wait {
  isLate(): boolean
  /** Notes that the command waits for the first connection to a node of a cluster. */
  connects(): void
}

export type MasterListener = (node: string, info: (section: string) => Promise<unknown>) => void

// biome-ignore lint/suspicious/noExplicitAny: structural types of clients that are not dependencies
export type Client = any

/** The part of a connection that depends on the client library. */
export interface Wire
  extends Pick<Connection, 'isCluster' | 'keyPrefix' | 'nodeOf' | 'send' | 'isConnectedTo' | 'sendTo'> {
  /** The event by which the user's client reports its end. */
  readonly endEvent: 'end' | 'disconnect'
  isReady(): boolean
  /** Ends the present connection, which is dead, and opens another one. Not for a cluster. */
  restart(error: Error): void
  /** Ends it for good. */
  end(): void
}

/** Events of a wire. */
export interface WireEvents {
  readonly ready: () => void
  failed(error: Error): void
  /** An attempt to connect has failed, or the connection is gone. The last `failed` has the cause. */
  notConnected(): void
  readonly master: MasterListener
}

/** Makes a value once per client. */
export function perClient<T>(make: (client: Client) => T): (client: Client) => T {
  const byClient = new WeakMap<Client, T>()
  return (client) => {
    const known = byClient.get(client)
    if (known !== undefined) return known
    const one = make(client)
    byClient.set(client, one)
    return one
  }
}

const waits = new WeakMap<Client, Promise<void>>()

/**
 * Resolves at the client's next of these events; callers always pass the same events. All callers share one wait: a
 * burst at the start must not add a listener per call.
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

/** The scripts that a client has sent since it last connected. The server that replies now has received all of them. */
export function scriptsSent(): (client: Client) => Set<string> {
  return perClient((client) => {
    const sent = new Set<string>()
    client.on('connect', () => sent.clear())
    // Before it is ready, the client refuses commands.
    client.on('ready', () => sent.clear())
    return sent
  })
}

/** The masters of a cluster, for senders. */
interface Masters {
  /** Undefined if no master is known. */
  ofSlot(slot: number): Client
  at(address: string): Client
  isReady(master: Client): boolean
  /** Resolves after one attempt to connect it. */
  connect(master: Client, wait: Wait): Promise<unknown>
  /** Sends through the cluster client, which finds the master by the key. */
  send(master: Client, key: string, command: (sent: Set<string>) => readonly string[], wait: Wait): Promise<unknown>
  /** Sends through the master's own client. */
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
      // Each master is connected when it is first needed, and refuses commands until then.
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

/** Ms to wait before the `attempt`-th reconnection, from 1. */
export function reconnectAfterMs(attempt: number): number {
  // At once: a server, or a device between, mostly closed this connection alone.
  return Math.min((attempt - 1) * 50, 500)
}

/** The address in a client's options, for messages. */
export function addressOf({ path, host = 'localhost', port = 6379 }: Client): string {
  return path ?? `${host}:${port}`
}
