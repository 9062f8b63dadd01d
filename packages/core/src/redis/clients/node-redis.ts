import calculateSlot from 'cluster-key-slot'
import {
  addressOf,
  type Client,
  type Connection,
  type MasterListener,
  nextOf,
  reconnectAfterMs,
  scriptsSent,
  type Wait,
  waitingRoom,
} from './connection.js'

/** Silence is as many looks in a row, after a first one, since which nothing was heard. */
const LOOKS = 5

/** Resolves when a client that connects is ready, or an attempt has failed: it goes on trying by itself. */
const attempt = (client: Client) => nextOf(client, ['ready', 'error', 'end'])

/**
 * Calls back when replies are due and none has come for `silenceMs`, or up to a fifth longer, for the clients' own
 * timeouts count what they write; and about every error that is replied. Due is a greeting, too: a server may accept a
 * connection and say nothing.
 */
function silenceWatch(
  client: Client,
  silenceMs: number,
  onSilence: () => void,
  onError: (error: Error) => void = () => {},
) {
  let due = 0
  // Looks are counted, not time: while the event loop is blocked nothing can be heard, nor even be sent.
  let unheard = 0
  // Looks again and again, for a timer with every reply would cost more than the reply.
  let timer: NodeJS.Timeout | undefined
  const lookAgain = () => {
    timer = setTimeout(look, silenceMs / LOOKS).unref()
  }
  const look = () => {
    timer = undefined
    if (due === 0) return
    if (unheard++ < LOOKS) lookAgain()
    else onSilence()
  }
  const heard = () => {
    due--
    unheard = 0
  }
  const watched = (reply: Promise<unknown>): Promise<unknown> => {
    if (due++ === 0) unheard = 0
    if (!timer) lookAgain()
    reply.then(heard, (error) => {
      heard()
      onError(error)
    })
    return reply
  }
  client.on('connect', () => watched(attempt(client)))
  return { watched }
}

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

interface Session {
  readonly client: Client
  readonly end: () => void
  readonly watched: (reply: Promise<unknown>) => Promise<unknown>
}

/** What becomes of a session, for as long as it is the current one. */
interface SessionEvents {
  isCurrent(session: Session): boolean
  connected(): void
  ready(own: Client): void
  failed(error: Error): void
  silent(): void
  /** Its master was demoted. */
  demoted(): void
}

/** Never connected again once it was ended: connecting while a socket is still being opened opens two. */
function openSession(client: Client, silenceMs: number, events: SessionEvents): Session {
  const isCurrent = () => events.isCurrent(session)
  const own = client.duplicate({
    disableOfflineQueue: true,
    socket: { ...client.options?.socket, reconnectStrategy, connectTimeout: silenceMs },
  })
  own.on('error', (error: Error) => {
    if (isCurrent()) events.failed(error)
  })
  own.on('ready', () => {
    if (isCurrent()) events.ready(own)
  })
  const end = keepConnected(
    own,
    destroyer(own),
    () => isCurrent() && events.connected(),
    (error) => isCurrent() && events.failed(error),
  )
  const { watched } = silenceWatch(
    own,
    silenceMs,
    () => isCurrent() && events.silent(),
    // A master demoted by a failover says READONLY: its name may lead to the new one by now.
    ({ message }) => message.startsWith('READONLY') && isCurrent() && events.demoted(),
  )
  const session = { client: own, end, watched }
  return session
}

export function nodeRedis(client: Client, silenceMs: number, connectTimeoutMs: number): Connection {
  let last: Error | undefined
  let isClosed = false
  let notifyDown: (error: Error | undefined) => void = () => {}
  let notifyMaster: MasterListener = () => {}
  const sentBy = scriptsSent()
  const room = waitingRoom(() => current.client.isReady, connectTimeoutMs)
  const failed = (error: Error) => {
    last = error
    if (!isClosed && !current.client.isReady && !room.refused(error)) notifyDown(error)
  }
  const restart = () => {
    current.end()
    current = openSession(client, silenceMs, events)
  }
  const events: SessionEvents = {
    isCurrent: (session) => current === session && !isClosed,
    connected: room.open,
    ready(own) {
      room.open()
      notifyMaster(addressOf(own.options?.socket ?? {}), (section) => own.sendCommand(['INFO', section]))
    },
    failed,
    silent() {
      restart()
      failed(new Error(`no reply for ${silenceMs} ms`))
    },
    demoted: restart,
  }
  let current = openSession(client, silenceMs, events)
  const close = () => {
    if (isClosed) return
    isClosed = true
    current.end()
  }
  client.once?.('end', close)
  return {
    isCluster: false,
    keyPrefix: '',
    isClosed: () => isClosed,
    whenReady: room.whenReady,
    connectTimeoutMs,
    startsUntil: room.startsUntil,
    onDown: (callback) => {
      notifyDown = callback
    },
    onMaster: (callback) => {
      notifyMaster = callback
    },
    nodeOf: () => addressOf(current.client.options?.socket ?? {}),
    send: (_key, command) =>
      current.watched(current.client.sendCommand([...command(sentBy(current.client))], PLAIN_REPLIES)),
    lastError: () => last,
    close: () => {
      client.off?.('end', close)
      close()
    },
  }
}

export function nodeRedisCluster(client: Client, silenceMs: number, connectTimeoutMs: number): Connection {
  let last: Error | undefined
  let isConnected = false
  let isClosed = false
  const failed = (error: Error) => {
    last = error
    if (!isConnected && !isClosed) room.refused(error)
  }
  const room = waitingRoom(() => isConnected, connectTimeoutMs)
  const ready = () => {
    isConnected = !isClosed
    room.open()
  }
  const own = duplicateOfCluster(client, silenceMs)
  own.on('error', failed)
  own.on('node-error', failed)
  const end = keepConnected(own, () => destroyCluster(own), ready, failed)
  let notifyMaster: MasterListener = () => {}
  const watchOf = masterWatches(silenceMs, {
    silent(master, node) {
      failed(new Error(`no reply for ${silenceMs} ms`))
      if (!isClosed) giveUp(master, node)
    },
    connected: ({ address }, node) => notifyMaster(address, (section) => node.sendCommand(['INFO', section])),
  })
  const close = () => {
    if (isClosed) return
    isClosed = true
    isConnected = false
    end()
  }
  // It says nothing of an end, as a client does.
  client.once?.('disconnect', close)
  return {
    isCluster: true,
    keyPrefix: '',
    isClosed: () => isClosed,
    whenReady: room.whenReady,
    connectTimeoutMs,
    startsUntil: room.startsUntil,
    onDown: () => {},
    onMaster: (callback) => {
      notifyMaster = callback
    },
    nodeOf: (slot) => own.slots[slot]?.master?.address ?? '',
    ...clusterSenders(own, watchOf, () => last),
    lastError: () => last,
    close: () => {
      client.off?.('disconnect', close)
      close()
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

type WatchOf = (master: Client) => ReturnType<typeof silenceWatch>

/** The watch of the connection that a master has. `connected` is called whenever that is ready. */
function masterWatches(
  silenceMs: number,
  events: { silent(master: Client, node: Client): void; connected(master: Client, node: Client): void },
): WatchOf {
  const watches = new WeakMap<Client, ReturnType<typeof silenceWatch>>()
  return (master) => {
    const node = master.client
    let watch = watches.get(node)
    if (!watch) {
      watch = silenceWatch(node, silenceMs, () => events.silent(master, node))
      watches.set(node, watch)
      const connected = () => events.connected(master, node)
      node.on('ready', connected)
      if (node.isReady) connected()
    }
    return watch
  }
}

function clusterSenders(
  own: Client,
  watchOf: WatchOf,
  lastError: () => Error | undefined,
): Required<Pick<Connection, 'send' | 'isConnectedTo' | 'sendTo'>> {
  const sentBy = scriptsSent()
  const masterNamed = (address: string): Client => own.masters.find((master: Client) => master.address === address)
  /** Waits for one attempt to connect a master that never was; for one that is lost nothing waits. */
  const connected = async (master: Client, wait: Wait) => {
    if (!master.client) own.nodeClient(master).catch(() => {})
    if (master.connectPromise) wait.connects()
    const node = master.client
    // The promise itself stays open until there is a connection, and keeps all that wait for it.
    if (master.connectPromise) await watchOf(master).watched(attempt(node))
    const last = lastError()
    if (!node.isReady) throw new Error(`its node was not connected${last ? `: ${last.message}` : ''}`)
  }
  return {
    send: (key, command, wait) => {
      const master = own.slots[calculateSlot(key)]?.master
      const send = () => {
        const sent = master?.client ? sentBy(master.client) : new Set<string>()
        const reply = own.sendCommand(key, false, [...command(sent)], PLAIN_REPLIES)
        return master?.client ? watchOf(master).watched(reply) : reply
      }
      if (!master || master.client?.isReady) return send()
      return connected(master, wait).then(() => {
        if (wait.isLate()) throw new Error('its node was connected too late')
        return send()
      })
    },
    isConnectedTo: (address) => masterNamed(address)?.client?.isReady === true,
    sendTo: (address, command) => {
      const master = masterNamed(address)
      if (!master?.client?.isReady) return Promise.reject(new Error(`${address} is not connected`))
      const { client: node } = master
      return watchOf(master).watched(node.sendCommand([...command(sentBy(node))], PLAIN_REPLIES))
    },
  }
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
