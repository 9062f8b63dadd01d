import {
  addressOf,
  type Client,
  clusterSenders,
  nextOf,
  reconnectAfterMs,
  scriptsSent,
  type Wire,
  type WireEvents,
} from './connection.js'
import { silenceWatch } from './silence.js'

/** Resolves when a connecting client is ready or an attempt has failed. The client continues to try by itself. */
const attempt = (client: Client) => nextOf(client, ['ready', 'error', 'end'])

/** Returns a function that notes that a reply is due. `onError`: called with every error reply. */
function replyWatch(
  client: Client,
  silenceMs: number,
  onSilence: (error: Error) => void,
  onError: (error: Error) => void = () => {},
): Watched {
  let due = 0
  let replies = 0
  const watch = silenceWatch(silenceMs, () => (due === 0 ? undefined : replies), onSilence)
  const noteReply = () => {
    due--
    replies++
  }
  const failed = (error: Error) => {
    noteReply()
    onError(error)
  }
  const watched: Watched = (reply) => {
    due++
    watch()
    reply.then(noteReply, failed)
    return reply
  }
  // The greeting is due, too: a server may accept a connection and never reply.
  client.on('connect', () => watched(attempt(client)))
  return watched
}

type Watched = (reply: Promise<unknown>) => Promise<unknown>

/** A duplicate inherits the user's type mapping of replies. Keys are RESP types: `$` is a bulk string. */
const PLAIN_REPLIES = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

/** The library counts attempts from 0. */
const reconnectStrategy = (attempt: number) => reconnectAfterMs(attempt + 1)

/**
 * Connects a client of `redis`, for as long as it takes. Returns a function that ends the attempts and the client for
 * good.
 */
function keepConnected(
  client: Client,
  destroy: () => void,
  onConnected: () => void,
  onFailed: (error: Error) => void,
): () => void {
  let isEnded = false
  const connect = async () => {
    // A cluster's `connect` fails when no node replies, and does not retry by itself.
    for (let attempt = 0; !isEnded; attempt++) {
      try {
        await client.connect()
        if (!isEnded) onConnected()
        return
      } catch (error) {
        if (isEnded) return
        onFailed(error as Error)
        await new Promise((resolve) => setTimeout(resolve, reconnectStrategy(attempt)))
      }
    }
  }
  void connect()
  return () => {
    isEnded = true
    destroy()
  }
}

/**
 * Returns a function that ends a client during or after its connection. Destroying a client while it opens a socket
 * leaves the socket behind: it opens anyway and keeps the process alive. The function therefore waits for the socket,
 * for at most `connectTimeout`.
 */
function destroyer(client: Client): () => void {
  let isOpening = true
  let isDoomed = false
  const destroyIfDoomed = () => {
    if (isDoomed && !isOpening) destroyNow(client)
  }
  const opened = () => {
    isOpening = false
    destroyIfDoomed()
  }
  client.on('reconnecting', () => {
    isOpening = true
  })
  client.on('connect', opened)
  client.on('error', opened)
  return () => {
    isDoomed = true
    destroyIfDoomed()
  }
}

/** Ends a cluster. Nodes that are still connecting end once connected, and do not keep the process alive until then. */
function destroyCluster(cluster: Client): void {
  for (const node of [...(cluster.masters ?? []), ...(cluster.replicas ?? [])]) {
    if (!node.client || node.client.isReady) continue
    node.client.unref()
    node.client.once('connect', () => destroyNow(node.client))
  }
  destroyNow(cluster)
}

function destroyNow(client: Client): void {
  try {
    client.destroy()
  } catch {
    // Not open, so there is nothing to end.
  }
}

export function nodeRedis(client: Client, silenceMs: number, events: WireEvents): Wire {
  const sentBy = scriptsSent()
  let isEnded = false
  const failed = (error: Error) => {
    events.failed(error)
    events.notConnected()
  }
  const restart = () => {
    current.end()
    current = openSession()
  }
  /** A session is never reconnected after its end: connecting while a socket is still opening would open two. */
  const openSession = () => {
    // Reports of a replaced or ended session are ignored.
    const whileCurrent =
      <Args extends unknown[]>(callback: (...args: Args) => void) =>
      (...args: Args) => {
        if (current === session && !isEnded) callback(...args)
      }
    const duplicate = client.duplicate({
      disableOfflineQueue: true,
      socket: { ...client.options?.socket, reconnectStrategy, connectTimeout: silenceMs },
    })
    duplicate.on('error', whileCurrent(failed))
    duplicate.on(
      'ready',
      whileCurrent(() => {
        events.ready()
        events.master(addressOf(duplicate.options?.socket ?? {}), (section) => duplicate.sendCommand(['INFO', section]))
      }),
    )
    const end = keepConnected(duplicate, destroyer(duplicate), whileCurrent(events.ready), whileCurrent(failed))
    const silent = whileCurrent((error: Error) => {
      restart()
      failed(error)
    })
    // A master demoted by a failover replies READONLY. Its name may resolve to the new master by now.
    const replied = whileCurrent(({ message }: Error) => message.startsWith('READONLY') && restart())
    const session = { client: duplicate, end, silent, watched: replyWatch(duplicate, silenceMs, silent, replied) }
    return session
  }
  let current = openSession()
  return {
    endEvent: 'end',
    isCluster: false,
    keyPrefix: '',
    isReady: () => current.client.isReady,
    restart: (error) => current.silent(error),
    nodeOf: () => addressOf(current.client.options?.socket ?? {}),
    send: (_key, command) =>
      current.watched(current.client.sendCommand([...command(sentBy(current.client))], PLAIN_REPLIES)),
    end: () => {
      isEnded = true
      current.end()
    },
  }
}

export function nodeRedisCluster(client: Client, silenceMs: number, events: WireEvents): Wire {
  let isConnected = false
  let isEnded = false
  let last: Error | undefined
  const failed = (error: Error) => {
    last = error
    events.failed(error)
    events.notConnected()
  }
  const duplicate = duplicateOfCluster(client, silenceMs)
  duplicate.on('error', failed)
  duplicate.on('node-error', failed)
  const ready = () => {
    isConnected = true
    events.ready()
  }
  const end = keepConnected(duplicate, () => destroyCluster(duplicate), ready, failed)
  const watches = new WeakMap<Client, Watched>()
  /** Watches the connection of a master. */
  const watchOf = (master: Client): Watched => {
    const node = master.client
    const known = watches.get(node)
    if (known) return known
    const watched = replyWatch(node, silenceMs, (error) => {
      failed(error)
      if (!isEnded) giveUp(master, node)
    })
    watches.set(node, watched)
    const connected = () => events.master(master.address, (section) => node.sendCommand(['INFO', section]))
    node.on('ready', connected)
    if (node.isReady) connected()
    return watched
  }
  return {
    // A cluster client has no `end` event, unlike a single client.
    endEvent: 'disconnect',
    isCluster: true,
    keyPrefix: '',
    isReady: () => isConnected && !isEnded,
    restart: () => {},
    nodeOf: (slot) => duplicate.slots[slot]?.master?.address ?? '',
    ...sendersOfCluster(duplicate, watchOf, () => last),
    end: () => {
      isEnded = true
      end()
    },
  }
}

function duplicateOfCluster(client: Client, silenceMs: number): Client {
  const { defaults, rootNodes } = client._self?._options ?? {}
  const socket = { ...defaults?.socket, reconnectStrategy, connectTimeout: silenceMs }
  // Each master is connected when first needed: one that hangs must not delay the others.
  return client.duplicate({
    minimizeConnections: true,
    // These connections read the slots alone. One that stays silent would hold up the cluster for as long as it is open.
    rootNodes: rootNodes?.map((node: Client) => ({ ...node, socket: { ...node.socket, socketTimeout: silenceMs } })),
    defaults: { ...defaults, disableOfflineQueue: true, socket },
  })
}

function sendersOfCluster(
  own: Client,
  watchOf: (master: Client) => Watched,
  lastError: () => Error | undefined,
): ReturnType<typeof clusterSenders> {
  const sentBy = scriptsSent()
  return clusterSenders({
    ofSlot: (slot) => own.slots[slot]?.master,
    at: (address) => own.masters.find((master: Client) => master.address === address),
    isReady: ({ client }) => client?.isReady === true,
    /** Waits for a master that was never connected, but not for a lost one. */
    async connect(master, wait) {
      if (!master.client) own.nodeClient(master).catch(() => {})
      if (master.connectPromise) wait.connects()
      const node = master.client
      // `connectPromise` itself stays pending until there is a connection, which would block all callers.
      if (master.connectPromise) await watchOf(master)(attempt(node))
      const last = lastError()
      if (!node.isReady) throw new Error(`its node was not connected${last ? `: ${last.message}` : ''}`)
    },
    send(master, key, command) {
      const node = master?.client
      const reply = own.sendCommand(key, false, [...command(node ? sentBy(node) : new Set())], PLAIN_REPLIES)
      return node ? watchOf(master)(reply) : reply
    },
    sendTo(master, command) {
      const node = master.client
      return watchOf(master)(node.sendCommand([...command(sentBy(node))], PLAIN_REPLIES))
    },
  })
}

/**
 * Ends a dead connection of a cluster. Its client reconnects. A client that was already connecting would connect twice,
 * so its master gets a new client when it is next needed.
 */
function giveUp(master: Client, node: Client): void {
  const wasReady = node.isReady
  destroyNow(node)
  if (master.client !== node) return
  if (wasReady) {
    node.connect().catch(() => {})
  } else {
    master.client = undefined
    master.connectPromise = undefined
  }
}
