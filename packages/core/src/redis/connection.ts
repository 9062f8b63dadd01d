import calculateSlot from 'cluster-key-slot'
import { invalidPolicy } from '../errors.js'

/** What the store needs of a Redis client: to send a command whole, or not at all. */
export interface Connection {
  readonly isCluster: boolean
  /** What the user's client puts before every key. */
  readonly keyPrefix: string
  /** Whether it has ended for good: by `close`, or with the user's client. */
  isClosed(): boolean
  /** Calls back once, when it is ready; at once where it is. Returns how to call that off. */
  whenReady(callback: () => void): () => void
  /**
   * Sends once its node is connected, unless `isLate` by then; rejects if that is not possible. Strings come back as bytes.
   * `key` decides the node in a cluster. Never sends twice.
   */
  send(key: string, command: readonly string[], isLate: () => boolean): Promise<unknown>
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
export function connect(client: Client, timeoutMs: number): Connection {
  // A peer that says nothing for so long, though asked, is given up: a connection can be dead and stay open.
  const silenceMs = Math.max(1000, timeoutMs + 500)
  if (typeof client?.duplicate === 'function') {
    if (typeof client.evalsha === 'function' && typeof client.status === 'string') return ioredis(client, silenceMs)
    if (typeof client.sendCommand === 'function' && typeof client.connect === 'function')
      return nodeRedis(client, silenceMs)
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

function ioredis(client: Client, silenceMs: number): Connection {
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
        redisOptions: { ...client.options.redisOptions, stringNumbers: false, keyPrefix: '', socketTimeout: silenceMs },
      })
    : client.duplicate({ ...noResend, socketTimeout: silenceMs })
  let last: Error | undefined
  own.on('error', (error: Error) => {
    last = error
  })
  const isReady = () => own.status === 'ready'
  const room = waitingRoom(isReady)
  own.on('ready', room.open)
  let isClosed = false
  const end = () => {
    isClosed = true
    own.disconnect()
  }
  client.once('end', end)
  return {
    isCluster,
    keyPrefix: client.options.keyPrefix ?? client.options.redisOptions?.keyPrefix ?? '',
    isClosed: () => isClosed,
    whenReady: room.whenReady,
    send: (key, [name, ...args], isLate) => {
      const node = isCluster ? masterOf(own, key) : undefined
      if (!node || node.status === 'ready') return own.callBuffer(name, args)
      return nodeReady(node).then(() => {
        if (isLate()) throw new Error('its node was connected too late')
        return own.callBuffer(name, args)
      })
    },
    lastError: () => last,
    close: () => {
      client.off('end', end)
      end()
    },
  }
}

/** The connection of a cluster to the master of this key, if it has one. */
function masterOf(cluster: Client, key: string): Client {
  const address = cluster.slots[calculateSlot(key)]?.[0]
  return cluster.nodes('master').find(({ options }: Client) => `${options.host}:${options.port}` === address)
}

const waitsByNode = new WeakMap<Client, Promise<void>>()

/**
 * A cluster connects to each node when it first needs it, and refuses what comes meanwhile. One wait for
 * all that do: a burst at the start must not hang a listener each on the node.
 */
function nodeReady(node: Client): Promise<void> {
  let ready = waitsByNode.get(node)
  if (!ready) {
    if (node.status === 'wait') node.connect().catch(() => {})
    ready = new Promise<void>((resolve) => {
      const settle = () => {
        waitsByNode.delete(node)
        node.off('ready', settle)
        node.off('end', settle)
        resolve()
      }
      node.on('ready', settle)
      node.on('end', settle)
    })
    waitsByNode.set(node, ready)
  }
  return ready
}

/** Calls back when replies are due and none has come for `silenceMs`. The clients' own timeouts count what they write. */
function silenceWatch(silenceMs: number, onSilence: () => void) {
  let due = 0
  let timer: NodeJS.Timeout | undefined
  const restart = () => {
    clearTimeout(timer)
    timer = due > 0 ? setTimeout(onSilence, silenceMs).unref() : undefined
  }
  const heard = () => {
    due--
    restart()
  }
  return {
    heed(reply: Promise<unknown>): Promise<unknown> {
      if (due++ === 0) restart()
      reply.then(heard, heard)
      return reply
    },
  }
}

/** A duplicate inherits what its user wants numbers and texts turned into. By RESP type: `$` is a bulk string. */
const PLAIN_REPLIES = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

function nodeRedis(client: Client, silenceMs: number): Connection {
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
  const destroy = () => {
    isConnected = false
    try {
      own.destroy()
    } catch {
      // Not open, so there is nothing to end.
    }
  }
  const silence = silenceWatch(silenceMs, () => {
    last = new Error(`no reply for ${silenceMs} ms`)
    destroy()
    if (!isClosed) void connecting()
  })
  void connecting()
  const close = () => {
    if (isClosed) return
    isClosed = true
    destroy()
  }
  client.once?.('end', close)
  return {
    isCluster,
    keyPrefix: '',
    isClosed: () => isClosed,
    whenReady: room.whenReady,
    send: (key, command) =>
      silence.heed(
        isCluster
          ? own.sendCommand(key, false, [...command], PLAIN_REPLIES)
          : own.sendCommand([...command], PLAIN_REPLIES),
      ),
    lastError: () => last,
    close: () => {
      client.off?.('end', close)
      close()
    },
  }
}
