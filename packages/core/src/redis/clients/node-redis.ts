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

/** Resolves when a client that connects is ready, or an attempt has failed: it goes on trying by itself. */
const attempt = (client: Client) => nextOf(client, ['ready', 'error', 'end'])

/** Returns what notes that a reply is due. `onError`: called with every error that is replied. */
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
  // A greeting is due, too: a server may accept a connection and say nothing.
  client.on('connect', () => watched(attempt(client)))
  return watched
}

type Watched = (reply: Promise<unknown>) => Promise<unknown>

/** A duplicate inherits what its user wants numbers and texts turned into. By RESP type: `$` is a bulk string. */
const PLAIN_REPLIES = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

/** The library counts from 0. */
const reconnectStrategy = (attempt: number) => reconnectAfterMs(attempt + 1)

/** Connects a client of `redis`, for as long as it takes. Returns how to end that, and the client with it, for good. */
function keepConnected(
  client: Client,
  destroy: () => void,
  onConnected: () => void,
  onFailed: (error: Error) => void,
): () => void {
  let isEnded = false
  const connect = async () => {
    // A cluster's connect fails when no node answers, and does not try again by itself.
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
 * How to end a client that is about to be connected. To destroy it while it opens a socket leaves that behind: it is
 * opened all the same, and keeps the process. So that is waited for, a `connectTimeout` at most.
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

/** Ends a cluster. Nodes that are still connecting are ended once connected, and do not keep the process alive until then. */
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
  /** Never connected again once it was ended: connecting while a socket is still being opened opens two. */
  const openSession = () => {
    // What a session reports that was replaced, or ended, counts for nothing.
    const whileCurrent =
      <Args extends unknown[]>(callback: (...args: Args) => void) =>
      (...args: Args) => {
        if (current === session && !isEnded) callback(...args)
      }
    const own = client.duplicate({
      disableOfflineQueue: true,
      socket: { ...client.options?.socket, reconnectStrategy, connectTimeout: silenceMs },
    })
    own.on('error', whileCurrent(failed))
    own.on(
      'ready',
      whileCurrent(() => {
        events.ready()
        events.master(addressOf(own.options?.socket ?? {}), (section) => own.sendCommand(['INFO', section]))
      }),
    )
    const end = keepConnected(own, destroyer(own), whileCurrent(events.ready), whileCurrent(failed))
    const silent = whileCurrent((error: Error) => {
      restart()
      failed(error)
    })
    // A master demoted by a failover says READONLY: its name may lead to the new one by now.
    const replied = whileCurrent(({ message }: Error) => message.startsWith('READONLY') && restart())
    const session = { client: own, end, watched: replyWatch(own, silenceMs, silent, replied) }
    return session
  }
  let current = openSession()
  return {
    endEvent: 'end',
    isCluster: false,
    keyPrefix: '',
    isReady: () => current.client.isReady,
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
  const own = duplicateOfCluster(client, silenceMs)
  own.on('error', failed)
  own.on('node-error', failed)
  const ready = () => {
    isConnected = true
    events.ready()
  }
  const end = keepConnected(own, () => destroyCluster(own), ready, failed)
  const watches = new WeakMap<Client, Watched>()
  /** Watches the connection that a master has. */
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
    // It says nothing of an end, as a client does.
    endEvent: 'disconnect',
    isCluster: true,
    keyPrefix: '',
    isReady: () => isConnected && !isEnded,
    nodeOf: (slot) => own.slots[slot]?.master?.address ?? '',
    ...sendersOfCluster(own, watchOf, () => last),
    end: () => {
      isEnded = true
      end()
    },
  }
}

function duplicateOfCluster(client: Client, silenceMs: number): Client {
  const defaults = client._self?._options?.defaults
  const socket = { ...defaults?.socket, reconnectStrategy, connectTimeout: silenceMs }
  // Each master is connected when first needed: one that hangs must not keep the others waiting.
  return client.duplicate({
    minimizeConnections: true,
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
    /** Waits for a master that never was connected; for one that is lost nothing waits. */
    async connect(master, wait) {
      if (!master.client) own.nodeClient(master).catch(() => {})
      if (master.connectPromise) wait.connects()
      const node = master.client
      // The promise itself stays open until there is a connection, and keeps all that wait for it.
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
 * Ends a dead connection of a cluster; its client connects again. A client that was already connecting would connect twice,
 * so its master gets a new client when it is needed next.
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
