import { invalidPolicy } from '../errors.js'

/** What the store needs of a Redis client: to send a command whole, or not at all. */
export interface Connection {
  readonly isCluster: boolean
  /** What the user's client puts before every key. */
  readonly keyPrefix: string
  isReady(): boolean
  /** Calls back once, when it is ready; at once where it is. Returns how to call that off. */
  whenReady(callback: () => void): () => void
  /** Sends now; rejects if that is not possible. `key` decides the node in a cluster. Never sends twice. */
  send(key: string, command: readonly string[]): Promise<unknown>
  /** The last thing that went wrong, for messages. */
  lastError(): Error | undefined
  close(): void
}

// biome-ignore lint/suspicious/noExplicitAny: structural types of clients that are not dependencies
type Client = any

const noResend = {
  // A command resent after a reconnect may charge a second time, and one that waits offline is
  // replayed into a window it was never meant for.
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  maxRetriesPerRequest: null,
  stringNumbers: false,
  lazyConnect: false,
  keyPrefix: '',
  retryStrategy: (attempt: number) => Math.min(attempt * 50, 500),
  // A master demoted by a failover says READONLY: look for the new one, without sending again (that would be 2).
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 1 : false),
}

/**
 * A connection of our own beside the user's client, to the same servers: only so can commands be kept
 * from being resent or queued, whatever the client is set to do for its user. It ends with the client.
 */
export function connect(client: Client): Connection {
  if (typeof client?.duplicate === 'function') {
    if (typeof client.evalsha === 'function' && typeof client.status === 'string') return ioredis(client)
    if (typeof client.sendCommand === 'function' && typeof client.connect === 'function') return nodeRedis(client)
  }
  return invalidPolicy(
    'redisStore',
    'client',
    'a client or cluster of ioredis (5 or later) or redis (5 or later)',
    client,
  )
}

/** Callbacks that wait for a connection to be ready: one listener for all, however many wait. */
function waitingRoom(isReady: () => boolean) {
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

function ioredis(client: Client): Connection {
  const isCluster = client.isCluster === true
  const own = isCluster
    ? client.duplicate([], {
        enableOfflineQueue: false,
        enableAutoPipelining: false,
        retryDelayOnFailover: 0,
        scaleReads: 'master',
        lazyConnect: false,
        keyPrefix: '',
        clusterRetryStrategy: noResend.retryStrategy,
        redisOptions: { ...client.options.redisOptions, stringNumbers: false, keyPrefix: '' },
      })
    : client.duplicate(noResend)
  let last: Error | undefined
  own.on('error', (error: Error) => {
    last = error
  })
  const isReady = () => own.status === 'ready'
  const room = waitingRoom(isReady)
  own.on('ready', room.open)
  const end = () => own.disconnect()
  client.once('end', end)
  return {
    isCluster,
    keyPrefix: client.options.keyPrefix ?? client.options.redisOptions?.keyPrefix ?? '',
    isReady,
    whenReady: room.whenReady,
    send: (_key, [name, ...args]) => own.call(name, args),
    lastError: () => last,
    close: () => {
      client.off('end', end)
      end()
    },
  }
}

/** A duplicate inherits what its user wants numbers and texts turned into. */
const PLAIN_REPLIES = { typeMapping: {} }

function nodeRedis(client: Client): Connection {
  const isCluster = 'slots' in client
  const reconnectStrategy = (attempt: number) => Math.min((attempt + 1) * 50, 500)
  const own = isCluster
    ? client.duplicate({ defaults: { ...client._self?._options?.defaults, disableOfflineQueue: true } })
    : client.duplicate({
        disableOfflineQueue: true,
        socket: { ...client.options?.socket, reconnectStrategy },
      })
  let last: Error | undefined
  let isConnected = false
  let isClosed = false
  const isReady = () => (isCluster ? isConnected : own.isReady)
  const room = waitingRoom(isReady)
  own.on('error', (error: Error) => {
    last = error
  })
  own.on('ready', room.open)
  const connecting = async () => {
    // A cluster's connect fails when no node answers, and does not try again by itself.
    for (let attempt = 0; !isClosed; attempt++) {
      try {
        await own.connect()
        isConnected = true
        room.open()
        return
      } catch (error) {
        last = error as Error
        await new Promise((resolve) => setTimeout(resolve, reconnectStrategy(attempt)))
      }
    }
  }
  void connecting()
  const close = () => {
    if (isClosed) return
    isClosed = true
    try {
      own.destroy()
    } catch {
      // Not open, so there is nothing to end.
    }
  }
  client.once?.('end', close)
  return {
    isCluster,
    keyPrefix: '',
    isReady,
    whenReady: room.whenReady,
    send: (key, command) =>
      isCluster
        ? own.sendCommand(key, false, [...command], PLAIN_REPLIES)
        : own.sendCommand([...command], PLAIN_REPLIES),
    lastError: () => last,
    close: () => {
      client.off?.('end', close)
      close()
    },
  }
}
