import {
  addressOf,
  type Client,
  type Connection,
  clusterSenders,
  type MasterListener,
  nextOf,
  perClient,
  reconnectAfterMs,
  scriptsSent,
  type Wire,
  type WireEvents,
} from './connection.js'
import { commandMaker } from './ioredis-commands.js'
import { silenceWatch } from './silence.js'

/** A command that waits offline would be replayed into a window that it was never meant for. */
const NO_QUEUE = { enableOfflineQueue: false, enableAutoPipelining: false, lazyConnect: false, keyPrefix: '' }

const NO_RESEND = {
  ...NO_QUEUE,
  // A command resent after a reconnect may charge a second time.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  stringNumbers: false,
  retryStrategy: reconnectAfterMs,
}

export function ioredis(client: Client, silenceMs: number, events: WireEvents): Wire {
  const isCluster = client.isCluster === true
  let left: unknown
  const hasLeft = () => left !== undefined && duplicate.stream === left
  // A master demoted by a failover replies READONLY, possibly many times at once. 1 means: reconnect to find the new
  // master, but do not resend (that would be 2).
  const duplicate: Client = duplicateOf(client, silenceMs, (error) => {
    if (!error.message.startsWith('READONLY') || left === duplicate.stream) return false
    left = duplicate.stream
    return 1
  })
  // Under Sentinel, the master's address changes, but its name does not.
  const address = duplicate.options.sentinels ? String(duplicate.options.name) : addressOf(duplicate.options)
  const awaitReply = silenceWatches(silenceMs)
  if (isCluster) duplicate.on('+node', awaitReply)
  else awaitReply(duplicate)
  duplicate.on('error', (error: Error) => events.failed(error))
  duplicate.on('ready', () => events.ready())
  duplicate.on('close', () => events.notConnected())
  watchMasters(duplicate, isCluster ? undefined : address, events.master)
  return {
    endEvent: 'end',
    isCluster,
    keyPrefix: client.options.keyPrefix ?? client.options.redisOptions?.keyPrefix ?? '',
    // The client reports ready until the connection that it leaves, or that the server has ended, has closed.
    isReady: () => duplicate.status === 'ready' && (isCluster || (duplicate.stream?.writable !== false && !hasLeft())),
    restart: (error) => duplicate.stream?.destroy(error),
    nodeOf: (slot) => (isCluster ? (duplicate.slots[slot]?.[0] ?? '') : address),
    ...(isCluster ? sendersOfCluster(duplicate, awaitReply) : { send: senderOf(duplicate, awaitReply) }),
    end: () => duplicate.disconnect(),
  }
}

/** Whether a client under Sentinel learns of a failover only once the old master says so. */
export function lacksFailoverDetector(client: Client): boolean {
  const { sentinels, failoverDetector } = client.options ?? {}
  return Array.isArray(sentinels) && failoverDetector !== true
}

/**
 * Ends connections on which replies are due and nothing arrives. ioredis's own `socketTimeout` sets and clears a timer
 * with every command, a tenth of a single decision's CPU time. This watch reads counters that the connection has
 * anyway.
 *
 * @returns a function to call with a connection when a command is sent on it
 */
function silenceWatches(silenceMs: number): (node: Client) => void {
  const watchOf = perClient((node) => {
    let connects = 0
    const observed = () => {
      const { stream, commandQueue } = node
      const isDue = stream && !stream.destroyed && commandQueue.length > 0
      return isDue ? `${connects} ${stream.bytesRead}` : undefined
    }
    const watch = silenceWatch(silenceMs, observed, (error) => node.stream.destroy(error))
    // The greeting is due, too: a server may accept a connection and never reply.
    node.on('connect', () => {
      connects++
      watch()
    })
    return watch
  })
  return (node) => watchOf(node)()
}

function duplicateOf(client: Client, silenceMs: number, reconnectOnError: (error: Error) => false | 1): Client {
  // Maximum interval of retries while a server loads its data, instead of the server's own estimate.
  const patience = { connectTimeout: silenceMs, socketTimeout: undefined, maxLoadingRetryTime: 500 }
  if (client.isCluster !== true) {
    const duplicate = client.duplicate({ ...NO_RESEND, ...patience, reconnectOnError })
    followCredentials(duplicate.options, () => client.options)
    return duplicate
  }
  const clusterDuplicate = client.duplicate([], {
    ...NO_QUEUE,
    retryDelayOnFailover: 0,
    retryDelayOnMoved: 0,
    scaleReads: 'master',
    clusterRetryStrategy: reconnectAfterMs,
    redisOptions: { ...client.options.redisOptions, stringNumbers: false, keyPrefix: '', ...patience },
  })
  // Version 6 gives its connections a copy of `redisOptions`.
  followCredentials(clusterDuplicate.connectionPool.redisOptions, () => client.options.redisOptions)
  return clusterDuplicate
}

const CREDENTIALS = ['username', 'password', 'sentinelUsername', 'sentinelPassword']

/** The library reads these options at each connection. Applications replace them in the client when secrets rotate. */
function followCredentials(options: Client, given: () => Client): void {
  for (const name of CREDENTIALS) {
    const get = () => given()?.[name]
    Object.defineProperty(options, name, { __proto__: null, get, enumerable: true, configurable: true } as object)
  }
}

/**
 * Calls back whenever a master is connected: the client itself if it has an address, otherwise nodes of its cluster.
 */
function watchMasters(own: Client, address: string | undefined, callback: MasterListener): void {
  const watch = (node: Client, nodeAddress: string, isMaster: () => boolean) =>
    node.on('ready', () => {
      if (isMaster()) callback(nodeAddress, (section) => node.call('INFO', section))
    })
  if (address !== undefined) watch(own, address, () => true)
  else {
    own.on('+node', (node: Client) => {
      watch(node, addressOf(node.options), () => own.nodes('master').includes(node))
    })
  }
}

function senderOf(own: Client, awaitReply: (node: Client) => void): Connection['send'] {
  const maker = commandMaker(own)
  const sentBy = scriptsSent()
  return (_key, command) => {
    const parts = command(sentBy(own))
    awaitReply(own)
    return maker ? own.sendCommand(maker(parts)) : own.callBuffer(parts[0], parts.slice(1))
  }
}

function sendersOfCluster(own: Client, awaitReply: (node: Client) => void): ReturnType<typeof clusterSenders> {
  const maker = commandMaker(own)
  const sentBy = scriptsSent()
  /** Nodes that were connected at least once. */
  const known = new WeakSet<Client>()
  return clusterSenders({
    ofSlot: (slot) => masterAt(own, own.slots[slot]?.[0]),
    at: (address) => masterAt(own, address),
    isReady: (node) => node.status === 'ready',
    connect(node, wait) {
      if (!known.has(node)) wait.connects()
      return connected(node)
    },
    send(node, _key, command, wait) {
      const parts = command(node ? sentBy(node) : new Set())
      if (node) {
        awaitReply(node)
        if (node.status === 'ready') known.add(node)
      }
      if (!maker) return own.callBuffer(parts[0], parts.slice(1))
      return sendToCluster(own, maker(parts), () => wait.isLate(), awaitReply)
    },
    sendTo(node, command) {
      const parts = command(sentBy(node))
      awaitReply(node)
      const reply: Promise<unknown> = maker ? node.sendCommand(maker(parts)) : node.callBuffer(parts[0], parts.slice(1))
      reply.catch((error: Error) => {
        // The cluster client does not see errors of commands sent directly to its nodes, and may need to find a new
        // master.
        if (!error.message.startsWith('NOSCRIPT')) own.refreshSlotsCache()
      })
      return reply
    },
  })
}

/** Resolves when a node connects or fails to connect. */
function connected(node: Client): Promise<void> {
  if (node.status === 'wait') node.connect().catch(() => {})
  return nextOf(node, ['ready', 'end'])
}

/**
 * Sends a command through the cluster client. By itself, that client resends refused commands later, however long ago
 * the caller stopped waiting. Here, only a redirection is a reason to resend: at once, and not if the command is late.
 */
function sendToCluster(
  cluster: Client,
  command: Client,
  isLate: () => boolean,
  awaitReply: (node: Client) => void,
): Promise<unknown> {
  const { reject } = command
  const reply = cluster.sendCommand(command)
  const sendAgain = command.reject
  command.reject = (error: Error) => {
    // A master that lost contact with the others keeps replying this. Another master may have its slots.
    if (error.message.startsWith('CLUSTERDOWN')) cluster.refreshSlotsCache()
    const [, address] = /^(?:MOVED|ASK) \d+ (\S+)/.exec(error.message) ?? []
    if (address === undefined || isLate()) return reject.call(command, error)
    const node = nodeAt(cluster, address)
    awaitReply(node)
    if (node.status === 'ready') return sendAgain.call(command, error)
    // A node that is not connected yet would refuse the command.
    return connected(node).then(() => (isLate() ? reject : sendAgain).call(command, error))
  }
  return reply
}

/** A cluster's connection to the node that a redirection names; made if there is none. */
function nodeAt(cluster: Client, address: string): Client {
  const port = address.lastIndexOf(':')
  const named = { host: address.slice(0, port), port: Number(address.slice(port + 1)) }
  return cluster.connectionPool.findOrCreate(cluster.natMapper(named))
}

/** A cluster's connection to a master, if there is one. */
function masterAt(cluster: Client, address: string): Client {
  return cluster.nodes('master').find(({ options }: Client) => addressOf(options) === address)
}
