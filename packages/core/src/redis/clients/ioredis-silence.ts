import type { Client } from './connection.js'

/** Silence is as many looks in a row, after a first one, between which nothing was read. */
const LOOKS = 5

/**
 * Ends connections of ioredis on which replies are due and nothing has come for `silenceMs`, or up to a fifth longer: one
 * can be dead and stay open. ioredis's own `socketTimeout` sets and clears a timer with every command, which is a tenth of the
 * CPU time of a decision that is alone. This one reads what the connection counts anyway.
 *
 * @returns what is to be called with a connection that a command is sent on
 */
export function silenceWatch(silenceMs: number): (node: Client) => void {
  const watches = new WeakMap<Client, () => void>()
  return (node) => {
    let watch = watches.get(node)
    if (!watch) {
      watch = watchOf(node, silenceMs)
      watches.set(node, watch)
    }
    watch()
  }
}

function watchOf(node: Client, silenceMs: number): () => void {
  let timer: NodeJS.Timeout | undefined
  let stream: Client
  let bytesRead = -1
  // Looks are counted, not time: while the event loop is blocked nothing can be read.
  let unheard = 0
  const lookLater = () => {
    timer = setTimeout(look, silenceMs / LOOKS).unref()
  }
  const look = () => {
    timer = undefined
    const current = node.stream
    // Nothing is due, or there is no connection: the next command, or the next connection, begins anew.
    if (!current || current.destroyed || node.commandQueue.length === 0) {
      bytesRead = -1
      return
    }
    const isSilent = current === stream && current.bytesRead === bytesRead
    stream = current
    bytesRead = current.bytesRead
    unheard = isSilent ? unheard + 1 : 0
    if (unheard >= LOOKS) current.destroy(new Error(`no reply for ${silenceMs} ms`))
    else lookLater()
  }
  const watch = () => {
    if (!timer) lookLater()
  }
  // Its greeting is due, too: a server may accept a connection and say nothing.
  node.on('connect', watch)
  return watch
}
