import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'

export interface Response {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface RequestOptions {
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request over a connection of its own, and reads the response to its end. */
export function send(url: string, { method = 'GET', headers = {} }: RequestOptions = {}): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** The statuses of requests that are sent one after another. */
export async function statuses(url: string, times: number): Promise<number[]> {
  const seen: number[] = []
  for (let n = 0; n < times; n++) seen.push((await send(url)).status)
  return seen
}

/** Sends a GET over a socket of its own; the function that it returns closes the connection. */
export async function sendAndLeave(url: string): Promise<() => void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  return () => socket.destroy()
}
