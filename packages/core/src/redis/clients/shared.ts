import type { Client, Connection, MasterListener } from './connection.js'

type DownListener = (error: Error | undefined) => void

/** A connection, and the stores on it. */
interface Shared {
  readonly connection: Connection
  users: number
  readonly downListeners: Set<DownListener>
  readonly masterListeners: Set<MasterListener>
  /** Masters that have been connected, for listeners that come later. */
  readonly masters: Map<string, Parameters<MasterListener>[1]>
  /** Whether it is known to be down, and by what. */
  down: { readonly error: Error | undefined } | undefined
}

/** By client, and by what else makes connections differ. */
const open = new WeakMap<Client, Map<string, Shared>>()

/**
 * One connection for all stores of a client, as long as one of them is open. By `terms`: with another timeout, a
 * connection that is dead but open would be ended later.
 */
export function sharedConnection(
  client: Client,
  terms: string,
  connectTimeoutMs: number,
  connect: () => Connection,
): Connection {
  const byTerms = open.get(client) ?? new Map<string, Shared>()
  let shared = byTerms.get(terms)
  if (!shared || shared.connection.isClosed()) {
    shared = share(connect())
    byTerms.set(terms, shared)
    open.set(client, byTerms)
  }
  return partOf(shared, connectTimeoutMs, () => {
    if (byTerms.get(terms) === shared) byTerms.delete(terms)
  })
}

function share(connection: Connection): Shared {
  const shared: Shared = {
    connection,
    users: 0,
    downListeners: new Set(),
    masterListeners: new Set(),
    masters: new Map(),
    down: undefined,
  }
  const up = () => {
    shared.down = undefined
  }
  connection.onDown((error) => {
    if (!shared.down) connection.whenReady(up)
    shared.down = { error }
    for (const listener of shared.downListeners) listener(error)
  })
  connection.onMaster((node, info) => {
    shared.masters.set(node, info)
    for (const listener of shared.masterListeners) listener(node, info)
  })
  return shared
}

/** A store's part in a connection: it closes by itself, and ends the connection with the last. */
function partOf(shared: Shared, connectTimeoutMs: number, ended: () => void): Connection {
  const { connection } = shared
  const startsUntil = performance.now() + connectTimeoutMs
  let downListener: DownListener | undefined
  let masterListener: MasterListener | undefined
  let isClosed = false
  shared.users++
  return {
    ...connection,
    connectTimeoutMs,
    startsUntil: () => (connection.startsUntil() === 0 ? 0 : startsUntil),
    isClosed: () => isClosed || connection.isClosed(),
    onDown(callback) {
      downListener = callback
      shared.downListeners.add(callback)
      // Later: the caller is still being made.
      setImmediate(() => shared.down && !isClosed && callback(shared.down.error))
    },
    onMaster(callback) {
      masterListener = callback
      shared.masterListeners.add(callback)
      for (const [node, info] of shared.masters) setImmediate(() => !isClosed && callback(node, info))
    },
    close() {
      if (isClosed) return
      isClosed = true
      if (downListener) shared.downListeners.delete(downListener)
      if (masterListener) shared.masterListeners.delete(masterListener)
      if (--shared.users > 0) return
      ended()
      connection.close()
    },
  }
}
