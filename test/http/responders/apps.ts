import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { everyone, memoryStore, type Verdict } from '@sluice/core'
import { afterAll } from 'vitest'
import type { AnyOptions } from '../support/app.js'
import type { Handler, HandlerApp, HandlerAppFactory } from '../support/handler-apps.js'
import { type RawRequest, rawRequest } from '../support/raw.js'

/** Only a hanging request takes so long, also on a busy machine. */
export const HANGS_MS = 60_000

export interface Running extends HandlerApp {
  readonly port: number
  /** Verdicts of the requests whose handler ran. */
  readonly ran: (Verdict | undefined)[]
  /** The server's ends of its connections, by the client's port. */
  readonly sockets: ReadonlyMap<number, Socket>
}

export type Start = (options: AnyOptions, answer?: Handler) => Promise<Running>

/** Starts apps, which end after all tests of the suite. */
export function starting(factory: HandlerAppFactory): Start {
  const running: Running[] = []
  afterAll(async () => {
    for (const { server } of running.splice(0)) {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    }
  })
  return async (options, answer = () => ({ body: 'done' })) => {
    const ran: (Verdict | undefined)[] = []
    const app = await factory({ key: everyone(), ...options }, (verdict) => {
      ran.push(verdict)
      return answer(verdict)
    })
    app.server.listen(0, '127.0.0.1')
    await once(app.server, 'listening')
    const sockets = new Map<number, Socket>()
    app.server.on('connection', (socket: Socket) => sockets.set(socket.remotePort as number, socket))
    const started = { ...app, ran, sockets, port: (app.server.address() as AddressInfo).port }
    running.push(started)
    return started
  }
}

export async function ask({ port }: Running, method?: string, headers?: Record<string, string>, target?: string) {
  return (await rawRequest(port, method, headers, target)).response
}

export const frozen = () => memoryStore({ clock: () => 1_000_000 })

/**
 * A store whose time is set by the test, so requests wait until the test makes room, however long it takes to send
 * them.
 */
export function timed() {
  const time = { now: 0 }
  return { time, store: memoryStore({ clock: () => time.now }) }
}

/** A store whose time stands still until `go`, and runs afterwards. */
export function held() {
  let wentAt: number | undefined
  const clock = () => (wentAt === undefined ? 0 : Math.floor(performance.now() - wentAt))
  const go = () => {
    wentAt = performance.now()
  }
  return { store: memoryStore({ clock }), go }
}

export const html = (body: string) => ({ headers: { 'Content-Type': 'text/html; charset=utf-8' }, body })

/** Sends a request, and waits until the server has processed it as far as it can without waiting. */
export async function sent(app: Running, headers?: Record<string, string>): Promise<RawRequest> {
  const arrived = once(app.server, 'request')
  const request = await rawRequest(app.port, 'GET', headers)
  await arrived
  await turns()
  return request
}

/** Ends a client's connection, and waits until the server has noticed. */
export async function leave(app: Running, { socket }: RawRequest): Promise<void> {
  const there = app.sockets.get(socket.localPort as number) as Socket
  // Not `once` of node:events, as pending writes to the socket may fail.
  const closed = there.closed ? undefined : new Promise((resolve) => there.once('close', resolve))
  socket.destroy()
  await closed
  await turns()
}

/** Resolves when everything is done that does not wait for a timer or a socket. */
async function turns(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve))
}

export function* pieces(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
