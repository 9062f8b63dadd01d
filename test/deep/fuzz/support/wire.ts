import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { LATE_PATHS, OTHER_PATHS } from '../../../http/support/late-apps.js'

/** The behaviour of one client on one connection. */
export interface Client {
  /** The bytes of its requests, in pieces that are sent some ms apart. */
  readonly pieces: readonly string[]
  readonly pauseMs: number
  /** Its action after it has sent them. */
  readonly end: 'wait' | 'half' | 'close' | 'reset'
  /** The number of its requests where all are complete and correct, otherwise undefined. */
  readonly requests: number | undefined
}

const body = (length: number) => 'b'.repeat(length)
const chunk = (length: number) => `${length.toString(16)}\r\n${body(length)}\r\n`
// Each path has its own handler; those that never end, or fail, cannot give a correct client a good response.
const PATHS = [...LATE_PATHS, ...OTHER_PATHS].filter((path) => path !== '/endless')
const start = (method: string) => `${method} PATH HTTP/1.1\r\nHost: x\r\n`
const right = (text: string) => ({ text, isRight: true })
const wrong = (text: string) => ({ text, isRight: false })
const length = fc.oneof(fc.nat(60), fc.constantFrom(999, 1000, 1001, 5000))

const chunked = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc.nat(400).map((n) => n + 1),
        fc.constantFrom(999, 1000, 1001),
      ),
      { maxLength: 4 },
    ),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([lengths, hasTrailers, expects]) => {
    const head = `${start('POST')}Transfer-Encoding: chunked\r\n${expects ? 'Expect: 100-continue\r\n' : ''}\r\n`
    return `${head}${lengths.map(chunk).join('')}0\r\n${hasTrailers ? 'X-Sum: 1\r\nRateLimit: "a";r=1\r\n' : ''}\r\n`
  })

const anywhere = fc.oneof(
  fc.constantFrom('GET', 'HEAD', 'DELETE').map((method) => right(`${start(method)}\r\n`)),
  length.map((n) => right(`${start('POST')}Content-Length: ${n}\r\n\r\n${body(n)}`)),
  length.map((n) => right(`${start('PUT')}Expect: 100-continue\r\nContent-Length: ${n}\r\n\r\n${body(n)}`)),
  { weight: 4, arbitrary: chunked.map(right) },
  // Requests that announce more than they send, or that no client sends.
  fc
    .tuple(length, fc.nat(50))
    .map(([n, less]) => wrong(`${start('POST')}Content-Length: ${n + less + 1}\r\n\r\n${body(n)}`)),
  fc.constantFrom('1000000', '99999999999999999999', '-1', '1e3', '0x10', '5, 5', '+5', '').map((n) => {
    return wrong(`${start('POST')}Content-Length: ${n}\r\n\r\n${body(20)}`)
  }),
  fc.constantFrom(
    ...[
      `${start('POST')}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
      `${start('POST')}Transfer-Encoding: chunked\r\n\r\nffffffffff\r\nabc`,
      `${start('POST')}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
      `${start('POST')}Transfer-Encoding: gzip\r\n\r\nabc`,
      `${start('POST')}Expect: the-impossible\r\nContent-Length: 3\r\n\r\nabc`,
      `${start('GET')}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n`,
      'GET / HTTP/9.9\r\n\r\n',
      '\0\r\n\r\n',
      `${start('GET')}X: ${'y'.repeat(20_000)}\r\n\r\n`,
    ].map(wrong),
  ),
)

const request = fc.tuple(anywhere, fc.constantFrom(...PATHS)).map(([{ text, isRight }, path]) => ({
  text: text.replace(' PATH ', ` ${path} `),
  isRight: isRight && path !== '/fail',
}))

/** Pipelined requests, in pieces of any size, complete or cut off. */
export const client: fc.Arbitrary<Client> = fc
  .record({
    requests: fc.array(request, { minLength: 1, maxLength: 4 }),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
    sent: fc.oneof({ weight: 2, arbitrary: fc.constant(1) }, fc.double({ min: 0, max: 1, noNaN: true })),
    pauseMs: fc.nat(6),
    end: fc.constantFrom('wait' as const, 'wait' as const, 'half' as const, 'close' as const, 'reset' as const),
  })
  .map(({ requests, cuts, sent, pauseMs, end }) => {
    const whole = requests.map(({ text }) => text).join('')
    const text = whole.slice(0, Math.ceil(whole.length * sent))
    const places = [0, ...cuts.map((cut) => Math.floor(cut * text.length)).sort((a, b) => a - b), text.length]
    const isRight = text === whole && requests.every(({ isRight }) => isRight)
    return {
      pieces: places.slice(1).map((to, i) => text.slice(places[i], to)),
      pauseMs,
      end,
      requests: isRight ? requests.length : undefined,
    }
  })

/** Plays a client. Resolves to the bytes that it received, when its connection has ended. */
export async function play(port: number, { pieces, pauseMs, end }: Client, patienceMs: number): Promise<string> {
  const socket = await opened(port)
  let answer = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const ended = new Promise((resolve) => socket.once('end', resolve))
  for (const piece of pieces) {
    if (socket.destroyed) break
    socket.write(piece, 'latin1')
    await sleep(pauseMs)
  }
  if (end === 'half') socket.end()
  if (end === 'half' || end === 'wait') await Promise.race([closed, ended, sleep(patienceMs)])
  if (end === 'reset') socket.resetAndDestroy()
  else socket.destroy()
  await closed
  return answer
}

/** The behaviour of one client on one HTTP/2 connection with several concurrent streams. */
export interface Http2Client {
  readonly streams: readonly {
    readonly method: string
    readonly path: string
    /** Bytes of its body, in pieces that are sent some ms apart. */
    readonly pieces: readonly number[]
    /** A number is the code of a reset. */
    readonly end: 'end' | 'open' | number
  }[]
  readonly pauseMs: number
  readonly end: 'wait' | 'close' | 'destroy'
}

export const http2Client: fc.Arbitrary<Http2Client> = fc.record({
  streams: fc.array(
    fc.record({
      method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT'),
      path: fc.constantFrom(...PATHS),
      pieces: fc.array(fc.oneof(fc.nat(60), fc.constantFrom(999, 1000, 1001, 5000)), { maxLength: 4 }),
      // Not 0: Node 20 itself sometimes never closes a stream that its client resets with NO_ERROR, limiter or none.
      end: fc.oneof(fc.constant('end' as const), fc.constant('open' as const), fc.integer({ min: 1, max: 13 })),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  pauseMs: fc.nat(6),
  end: fc.constantFrom('wait' as const, 'close' as const, 'destroy' as const),
})

/** Plays a client of HTTP/2. Resolves to the statuses that it received. */
export async function playHttp2(
  port: number,
  { streams, pauseMs, end }: Http2Client,
  patienceMs: number,
): Promise<number[]> {
  const socket = await opened(port)
  const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => socket })
  session.on('error', () => {})
  const received: number[] = []
  const closed = streams.map(async ({ method, path, pieces, end }) => {
    const stream = session.request(
      { ':method': method, ':path': path, 'content-type': 'text/plain' },
      { endStream: false },
    )
    stream.on('error', () => {}).on('response', (headers) => void received.push(Number(headers[':status'])))
    const closed = new Promise((resolve) => stream.once('close', resolve))
    stream.resume()
    for (const bytes of pieces) {
      if (stream.destroyed || stream.closed) break
      stream.write(body(bytes))
      await sleep(pauseMs)
    }
    if (end === 'end') stream.end()
    else if (end !== 'open') stream.close(end)
    await closed
  })
  await Promise.race([Promise.all(closed), sleep(end === 'wait' ? patienceMs : pauseMs)])
  if (end === 'close') {
    session.close()
    await Promise.race([Promise.all(closed), sleep(pauseMs)])
  }
  session.destroy()
  // A session that closes waits for the server, which waits for the rest of bodies.
  socket.destroy()
  return received
}

/** A connection whose errors are ignored. */
export function opened(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  return new Promise((resolve) => socket.once('connect', () => resolve(socket)).once('close', () => resolve(socket)))
}

/** The statuses of all final responses in the bytes that a connection received. */
export function statuses(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
    .map(([, status]) => Number(status))
    .filter((status) => status >= 200)
}
