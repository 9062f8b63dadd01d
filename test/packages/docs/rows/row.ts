import type { RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What one library does, in a few words. */
export type Look = () => unknown

/** A row of a migration page, as both libraries do it. */
export interface Tried {
  readonly peer: Look
  readonly ours: Look
  readonly shows: { readonly peer: unknown; readonly ours: unknown }
  /** Where they differ, the words of the page that say so. */
  readonly words?: string
}

/** A row that cannot be run, and why. */
export interface Untried {
  readonly why: string
}

/** Rows by the text of their first cell: several, where a row has several forms. */
export type Rows = Readonly<Record<string, Tried | Untried | readonly Tried[]>>

export const same = (peer: Look, ours: Look, both: unknown): Tried => ({
  peer,
  ours,
  shows: { peer: both, ours: both },
})

/** The page must say that they differ, in these words. */
export const differs = (peer: Look, ours: Look, shows: Tried['shows'], words: string): Tried => ({
  peer,
  ours,
  shows,
  words,
})

export const untried = (why: string): Untried => ({ why })

export interface Sent {
  readonly path?: string
  readonly ip?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Received {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** What of a response is looked at. */
export type Show = (received: Received) => string

export const status: Show = (received) => String(received.status)

export const body: Show = ({ status, text }) => `${status} ${text}`

export const fields =
  (...names: string[]): Show =>
  ({ status, headers }) =>
    [status, ...names.map((name) => `${name}=${headers.get(name) ?? '-'}`)].join(' ')

const open: Server[] = []

/** Ends the servers of the last row. */
export function closeAll(): void {
  for (const server of open.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
}

/** Sends requests from outside, one after the other, and shows their responses. By default three, and their statuses. */
export async function ask(
  listener: RequestListener | Server,
  sent: readonly Sent[] = times(3),
  show = status,
): Promise<string> {
  const server = typeof listener === 'function' ? createServer(listener) : listener
  open.push(server)
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const shown: string[] = []
  for (const { path = '/', ip = '203.0.113.9', headers } of sent) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-forwarded-for': ip, ...headers } })
    shown.push(show({ status: response.status, headers: response.headers, text: await response.text() }))
  }
  return shown.join(', ')
}

export const times = (count: number, sent: Sent = {}): Sent[] => Array.from({ length: count }, () => sent)

export const paths = (...all: string[]): Sent[] => all.map((path) => ({ path }))

export const ips = (...all: string[]): Sent[] => all.map((ip) => ({ ip }))

export const users = (...all: string[]): Sent[] => all.map((user) => (user === '' ? {} : { headers: { user } }))

/** The message of the error that something throws. */
export async function errorOf(run: Look): Promise<string> {
  try {
    await run()
  } catch (error) {
    return (error as Error).message
  }
  return 'no error'
}
