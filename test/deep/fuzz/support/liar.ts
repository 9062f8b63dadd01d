import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HOST } from '../../../support/redis-server.js'

/** The reply to a script, in pieces some ms apart with a character for each byte, and the end of the connection. */
export interface Lie {
  readonly chunks: readonly string[]
  readonly end: 'stay' | 'close' | 'reset'
}

export interface Liar {
  readonly port: number
  answer: Lie
  /** The number of scripts that it was sent. */
  runs: number
  /** Ends all connections. */
  cut(): Promise<void>
  stop(): Promise<void>
}

/** A server that greets every client like Redis, and sends false replies to scripts. */
export async function startLiar(): Promise<Liar> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
      for (let read = command(text); read; read = command(text)) {
        text = text.slice(read.length)
        void reply(socket, read.words)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve))

  const liar: Liar = {
    port: (server.address() as AddressInfo).port,
    runs: 0,
    answer: { chunks: ['+OK\r\n'], end: 'stay' },
    async cut() {
      for (const socket of sockets) socket.destroy()
      await sleep(1)
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }

  async function reply(socket: Socket, [name = '']: readonly string[]): Promise<void> {
    if (!/^evalsha$|^eval$/i.test(name)) {
      const info = 'redis_version:7.0.0\r\nloading:0\r\n'
      socket.write(
        /^info$/i.test(name) ? `$${info.length}\r\n${info}\r\n` : /^hello$/i.test(name) ? '*0\r\n' : '+OK\r\n',
      )
      return
    }
    liar.runs++
    const { chunks, end } = liar.answer
    for (const [i, chunk] of chunks.entries()) {
      if (i > 0) await sleep(2)
      if (!socket.destroyed) socket.write(chunk, 'latin1')
    }
    if (end === 'close') socket.end()
    else if (end === 'reset') socket.resetAndDestroy()
  }
  return liar
}

/** The first command in the bytes of a client, once it is complete. */
function command(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (!head) return undefined
  const words: string[] = []
  let at = head[0].length
  for (let n = Number(head[1]); n > 0; n--) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 20))
    if (!size) return undefined
    const start = at + size[0].length
    at = start + Number(size[1]) + 2
    if (at > text.length) return undefined
    words.push(text.slice(start, at - 2))
  }
  return { words, length: at }
}
