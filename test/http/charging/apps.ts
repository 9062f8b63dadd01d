import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { everyone, memoryStore, type Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { afterEach } from 'vitest'
import type { AnyOptions } from '../support/app.js'
import type { Answering, BodyApp, BodyAppFactory } from '../support/body-apps.js'

export interface Running extends BodyApp {
  readonly url: string
  readonly port: number
}

export type Start = (options: AnyOptions, answer?: Answering) => Promise<Running>

/** Starts apps, each of which ends after its test. */
export function starting(factory: BodyAppFactory): Start {
  const running: BodyApp[] = []
  afterEach(async () => {
    for (const { server } of running.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })
  return async (options, answer = done) => {
    const app = await factory({ key: everyone(), ...options }, answer)
    running.push(app)
    app.server.listen(0, '127.0.0.1')
    await once(app.server, 'listening')
    const { port } = app.server.address() as AddressInfo
    return { ...app, port, url: `http://127.0.0.1:${port}` }
  }
}

export const left = async (app: BodyApp) => (await app.limiter.peek('everyone')).remaining
/** A store whose clock stands still: only refunds and settled costs return units. */
export const still = () => memoryStore({ clock: () => 1_000_000 })
export const isFailure = (status: number) => status >= 400

const done: Answering = async () => ({ status: 200, text: 'done' })

/** Late enough for other requests to arrive meanwhile. */
export const slowly =
  (status: number): Answering =>
  async () => {
    await pause(60)
    return { status, text: '' }
  }

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The same store, as asynchronous as one behind a network. */
export function promised(store: Store): Store {
  return {
    decide: async (request) => store.decide(request),
    reset: async (plan, identities) => store.reset(plan, identities),
    [BANS]: {
      block: async (...block) => store[BANS]?.block(...block),
      unblock: async (...block) => store[BANS]?.unblock(...block),
    },
    close: () => store.close(),
  }
}

export function chunkedPost(app: Running) {
  const request = send(app.url, {
    method: 'POST',
    headers: { 'transfer-encoding': 'chunked', 'content-type': 'text/plain' },
  })
  const response = once(request, 'response').then(([response]) => response as IncomingMessage)
  response.catch(() => {})
  request.on('error', () => {})
  return { request, response }
}

export async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return text
}

/** Sends a GET over its own socket; the returned function disconnects. */
export async function hangingGet(port: number): Promise<() => void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  return () => socket.destroy()
}
