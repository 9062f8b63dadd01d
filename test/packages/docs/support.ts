import { request } from 'node:http'
import { type AddressInfo, Server } from 'node:net'
import { Logger } from '@nestjs/common'
import { expect, vi } from 'vitest'

/** Helpers that the code of a document may use to test itself, and that end with its test. */

const servers: Server[] = []
const listening = new WeakMap<Server, Promise<void>>()
let shown: string[] = []

// Nest logs each route.
Logger.overrideLogger(false)

/** Servers of documents use port 3000; here they get a free one, on this machine only. */
const listen = Server.prototype.listen
Server.prototype.listen = function (this: Server, ...args: unknown[]) {
  servers.push(this)
  listening.set(this, new Promise((resolve) => this.once('listening', resolve)))
  const [first, ...rest] = args
  const local =
    typeof first === 'object' && first !== null
      ? { ...first, ...('port' in first && first.port === 3000 && { port: 0, host: '127.0.0.1' }) }
      : { port: 0, host: '127.0.0.1' }
  return Reflect.apply(listen, this, [local, ...rest])
} as typeof listen

export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: a document knows the form of its response
  readonly json: any
}

/** Sends a request to the server that the document started last. */
export async function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<Response> {
  const server = servers.at(-1)
  if (!server) throw new Error('this block has started no server')
  await listening.get(server)
  const { port } = server.address() as AddressInfo
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () =>
        resolve({
          status: response.statusCode as number,
          headers: response.headers,
          text,
          get json() {
            return JSON.parse(text)
          },
        }),
      )
      response.on('error', reject)
    })
    sent.on('error', reject).end(body)
  })
}

export const get = (path: string, headers?: Record<string, string>) => send('GET', path, headers)

/** Checks a response against the next HTTP message in the document: all of its lines, and its body if it has one. */
export function shows({ status, headers, text }: Response): void {
  const message = shown.shift()
  if (message === undefined) throw new Error('the document shows no such message')
  const [head = '', ...body] = message.trimEnd().split('\n\n')
  const [statusLine = '', ...lines] = head.split('\n')
  const own: string[] = [statusLine.replace(/\d{3}/, String(status))]
  for (const line of lines) {
    const name = line.slice(0, line.indexOf(':'))
    own.push(`${name}: ${headers[name.toLowerCase()] ?? '(none)'}`)
  }
  expect(own.join('\n')).toBe(head)
  // Quota fields that are sent but not shown would mislead.
  const sentFields = Object.keys(headers).filter((name) => /ratelimit|retry-after/.test(name))
  expect(lines.map((line) => line.slice(0, line.indexOf(':')).toLowerCase())).toEqual(
    expect.arrayContaining(sentFields),
  )
  if (body.length > 0) expect(text.trimEnd()).toBe(body.join('\n\n').replace(/\n\s*/g, ''))
}

export { expect }

const tests: (() => Promise<void>)[] = []

/** In place of that of vitest: `runTests` runs it. */
export function test(_name: string, run: () => Promise<void>): void {
  tests.push(run)
}

export async function runTests(): Promise<void> {
  for (const run of tests.splice(0)) await run()
}

/** Stops time at `at`, or now, so that numbers in documents are the same in every run. */
export function stopClock(at: string | number = Date.now()): void {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: new Date(at) })
}

export function passMs(ms: number): void {
  vi.advanceTimersByTime(ms)
}

/** Before a block: forgets the previous one. */
export function begin(messages: readonly string[]): void {
  clear()
  shown = [...messages]
}

/** Forgets the servers so far, for a block that starts several. */
export function clear(): void {
  for (const server of servers.splice(0)) {
    server.close()
    ;(server as { closeAllConnections?: () => void }).closeAllConnections?.()
  }
}

/** After a block. Every message in the document must have been compared with a real one. */
export function end(): void {
  vi.useRealTimers()
  clear()
  const left = shown
  shown = []
  expect(left).toEqual([])
}
