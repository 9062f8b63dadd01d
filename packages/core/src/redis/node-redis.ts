import calculateSlot from 'cluster-key-slot'
import { addressOf, type Client, type Connection, reconnectAfterMs, waitingRoom } from './connection.js'

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

/** A duplicate inherits what its user wants numbers and texts turned into. By RESP type: `$` is a bulk string. */
const PLAIN_REPLIES = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

/** The library counts from 0. */
const reconnectStrategy = (attempt: number) => reconnectAfterMs(attempt + 1)

/** Connects a client of `redis`, for as long as it takes; and anew, whatever becomes of the connection it had. */
function keepConnected(client: Client, onConnected: () => void, onFailed: (error: Error) => void) {
  let current = 0
  let isEnded = false
  const connect = async () => {
    const mine = ++current
    // A cluster's connect fails when no node answers, and does not try again by itself.
    for (let attempt = 0; mine === current; attempt++) {
      try {
        await client.connect()
        // Ended while it was on its way: what is open now would keep the process.
        if (isEnded) client.destroy()
        else if (mine === current) onConnected()
        return
      } catch (error) {
        if (mine === current) onFailed(error as Error)
        await new Promise((resolve) => setTimeout(resolve, reconnectStrategy(attempt)))
      }
    }
  }
  const drop = () => {
    current++
    try {
      client.destroy()
    } catch {
      // Not open, so there is nothing to end.
    }
  }
  const end = () => {
    isEnded = true
    drop()
  }
  const restart = () => {
    drop()
    void connect()
  }
  void connect()
  return { end, restart }
}

export function nodeRedis(client: Client, silenceMs: number): Connection {
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

export function nodeRedisCluster(client: Client, silenceMs: number): Connection {
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
