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
  /** Calls back whenever the connection is found to be down, the first attempt included. Never of a cluster, which may be down in part. */
  onDown(callback: (error: Error | undefined) => void): void
  /** The address of the master that keeps a slot, as far as it is known; always the same without a cluster. */
  nodeOf(slot: number): string
  /**
   * Sends once its node is connected, unless `isLate` by then; rejects if that is not possible.
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
      return 'slots' in client ? nodeRedisCluster(client, silenceMs) : nodeRedis(client, silenceMs)
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
  // While a server loads its data it is asked again this often, not when it guesses to be done.
  const patience = { connectTimeout: silenceMs, socketTimeout: silenceMs, maxLoadingRetryTime: 500 }
  const own = isCluster
    ? client.duplicate([], {
        enableOfflineQueue: false,
        enableAutoPipelining: false,
        retryDelayOnFailover: 0,
        scaleReads: 'master',
        lazyConnect: false,
        keyPrefix: '',
        clusterRetryStrategy: noResend.retryStrategy,
        redisOptions: { ...client.options.redisOptions, stringNumbers: false, keyPrefix: '', ...patience },
      })
    : client.duplicate({ ...noResend, ...patience })
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
    onDown: (callback) => {
      if (!isCluster) own.on('close', () => isClosed || callback(last))
    },
    nodeOf: (slot) => (isCluster ? (own.slots[slot]?.[0] ?? '') : addressOf(own.options)),
    send: (key, [name, ...args], isLate) => {
      const node = isCluster ? masterOf(own, key) : undefined
      if (!node || node.status === 'ready') return own.call(name, args)
      return nodeReady(node).then(() => {
        if (isLate()) throw new Error('its node was connected too late')
        return own.call(name, args)
      })
    },
    lastError: () => last,
    close: () => {
      client.off('end', end)
      end()
    },
  }
}

function addressOf({ path, host, port }: Client): string {
  return path ?? `${host}:${port}`
}

/** The connection of a cluster to the master of this key, if it has one. */
function masterOf(cluster: Client, key: string): Client {
  const address = cluster.slots[calculateSlot(key)]?.[0]
  return cluster.nodes('master').find(({ options }: Client) => addressOf(options) === address)
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

/**
 * Calls back when replies are due and none has come for `silenceMs`, for the clients' own timeouts count what they
 * write; and about every error that is replied.
 */
function silenceWatch(silenceMs: number, onSilence: () => void, onError: (error: Error) => void = () => {}) {
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
      reply.then(heard, (error) => {
        heard()
        onError(error)
      })
      return reply
    },
  }
}

/** A duplicate inherits what its user wants numbers and texts turned into. */
const PLAIN_REPLIES = { typeMapping: {} }

const reconnectStrategy = (attempt: number) => Math.min((attempt + 1) * 50, 500)

/** Connects a client of `redis`, for as long as it takes; and anew, whatever becomes of the connection it had. */
function keepConnected(client: Client, onConnected: () => void, onFailed: (error: Error) => void) {
  let current = 0
  const connect = async () => {
    const mine = ++current
    // A cluster's connect fails when no node answers, and does not try again by itself.
    for (let attempt = 0; mine === current; attempt++) {
      try {
        await client.connect()
        if (mine === current) onConnected()
        return
      } catch (error) {
        if (mine === current) onFailed(error as Error)
        await new Promise((resolve) => setTimeout(resolve, reconnectStrategy(attempt)))
      }
    }
  }
  const end = () => {
    current++
    try {
      client.destroy()
    } catch {
      // Not open, so there is nothing to end.
    }
  }
  const restart = () => {
    end()
    void connect()
  }
  void connect()
  return { end, restart }
}

function nodeRedis(client: Client, silenceMs: number): Connection {
  const own = client.duplicate({
    disableOfflineQueue: true,
    socket: { ...client.options?.socket, reconnectStrategy, connectTimeout: silenceMs },
  })
  let last: Error | undefined
  let isClosed = false
  let tellDown: (error: Error | undefined) => void = () => {}
  const failed = (error: Error) => {
    last = error
    if (!isClosed && !own.isReady) tellDown(error)
  }
  const room = waitingRoom(() => own.isReady)
  let greeting: NodeJS.Timeout | undefined
  own.on('error', (error: Error) => {
    clearTimeout(greeting)
    failed(error)
  })
  // A server that accepts a connection and says nothing: the client would wait for ever.
  own.on('connect', () => {
    clearTimeout(greeting)
    greeting = setTimeout(silent, silenceMs).unref()
  })
  own.on('ready', () => {
    clearTimeout(greeting)
    room.open()
  })
  const connected = keepConnected(own, room.open, failed)
  function silent(): void {
    if (isClosed) return
    connected.restart()
    failed(new Error(`no reply for ${silenceMs} ms`))
  }
  // A master demoted by a failover says READONLY: its name may lead to the new one by now.
  const silence = silenceWatch(silenceMs, silent, ({ message }) => {
    if (message.startsWith('READONLY') && !isClosed) connected.restart()
  })
  const close = () => {
    if (isClosed) return
    isClosed = true
    clearTimeout(greeting)
    connected.end()
  }
  client.once?.('end', close)
  return {
    isCluster: false,
    keyPrefix: '',
    isClosed: () => isClosed,
    whenReady: room.whenReady,
    onDown: (callback) => {
      tellDown = callback
    },
    nodeOf: () => addressOf(own.options?.socket ?? {}),
    send: (_key, command) => silence.heed(own.sendCommand([...command], PLAIN_REPLIES)),
    lastError: () => last,
    close: () => {
      client.off?.('end', close)
      close()
    },
  }
}

function nodeRedisCluster(client: Client, silenceMs: number): Connection {
  const defaults = client._self?._options?.defaults
  const socket = { ...defaults?.socket, reconnectStrategy, connectTimeout: silenceMs }
  // Each master is connected when first needed: one that hangs must not keep the others waiting.
  const own = client.duplicate({
    minimizeConnections: true,
    defaults: { ...defaults, disableOfflineQueue: true, socket },
  })
  let last: Error | undefined
  let isConnected = false
  let isClosed = false
  const failed = (error: Error) => {
    last = error
  }
  const room = waitingRoom(() => isConnected)
  const ready = () => {
    isConnected = !isClosed
    room.open()
  }
  own.on('error', failed)
  own.on('node-error', failed)
  const connected = keepConnected(own, ready, failed)
  const watches = new WeakMap<Client, ReturnType<typeof silenceWatch>>()
  const watchOf = (node: Client) => {
    let watch = watches.get(node)
    if (!watch) {
      watch = silenceWatch(silenceMs, () => {
        failed(new Error(`no reply for ${silenceMs} ms`))
        if (!isClosed) reconnect(node)
      })
      watches.set(node, watch)
    }
    return watch
  }
  const masterAt = (slot: number) => own.slots[slot]?.master
  const close = () => {
    if (isClosed) return
    isClosed = true
    isConnected = false
    connected.end()
  }
  client.once?.('end', close)
  return {
    isCluster: true,
    keyPrefix: '',
    isClosed: () => isClosed,
    whenReady: room.whenReady,
    onDown: () => {},
    nodeOf: (slot) => masterAt(slot)?.address ?? '',
    send: (key, command, isLate) => {
      const master = masterAt(calculateSlot(key))
      const send = () => {
        const reply = own.sendCommand(key, false, [...command], PLAIN_REPLIES)
        return master?.client ? watchOf(master.client).heed(reply) : reply
      }
      if (!master || (master.client && !master.connectPromise)) return send()
      return own.nodeClient(master).then(() => {
        if (isLate()) throw new Error('its node was connected too late')
        return send()
      })
    },
    lastError: () => last,
    close: () => {
      client.off?.('end', close)
      close()
    },
  }
}

/** Gives one connection of a cluster up for dead; its client goes on trying by itself. */
function reconnect(node: Client): void {
  try {
    node.destroy()
  } catch {
    // Not open: then it has only to be opened.
  }
  node.connect().catch(() => {})
}
