// Takes long: begins first. Runs alone: it inspects all timers.
import type { AddressInfo } from 'node:net'
import { concurrency, delay, everyone, memoryStore, queue, type Responder, slidingLog, tarpit } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { BODY_APPS, type BodyApp } from '../../http/support/body-apps.js'
import { LATE_APPS } from '../../http/support/late-apps.js'
import { until } from '../../support/until.js'
import { must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { FuzzedServer, type State } from './support/fuzzed-server.js'
import { MOST_BYTES, PERMITS, SETUPS } from './support/setups.js'
import {
  type Client,
  client,
  type Http2Client,
  http2Client,
  opened,
  play,
  playHttp2,
  statuses,
} from './support/wire.js'

const servers = await Promise.all(Object.keys(LATE_APPS).map((framework) => FuzzedServer.start(framework)))
const setups = Object.keys(SETUPS) as (keyof typeof SETUPS)[]
afterAll(() => {
  for (const server of servers) server.stop()
})

/** Statuses that a server may send to any client; others would be an error of Sluice. */
const STATUSES = [200, 201, 302, 400, 404, 408, 413, 417, 429, 431, 500, 501, 503, 505]
const PATIENCE_MS = 60
/** Only a request that hangs takes longer, even on a busy machine. */
const SERVED_WITHIN_MS = 60_000

/** Connections of one batch: to an app of each framework, 100 in all. */
const crowd = (framework: string) =>
  fc.record({
    setup: fc.nat(setups.length - 1),
    clients: framework.endsWith('HTTP/2')
      ? fc.array(http2Client, { minLength: 10, maxLength: 10 })
      : fc.array(client, { minLength: 20, maxLength: 20 }),
  })
type Crowd = { readonly setup: number; readonly clients: readonly (Client | Http2Client)[] }

fuzz(
  'connections',
  'caps hold, all resources are freed and the next client is served, whatever clients and handlers do',
  {
    inputs: fc.tuple(...servers.map(({ framework }) => crowd(framework))) as fc.Arbitrary<Crowd[]>,
    dearness: 200,
    // Each input has 100 connections.
    least: 40,
    async check(crowds) {
      await Promise.all(servers.map((server, i) => checkOne(server, crowds[i] as Crowd)))
    },
  },
)

async function checkOne(server: FuzzedServer, { setup, clients }: Crowd): Promise<void> {
  const port = server.ports[setup] as number
  const name = setups[setup] as keyof typeof SETUPS
  const what = `${server.framework}, ${name}`
  await server.order({ app: setup, expect: 'crowd' })
  const responses = await Promise.all(
    clients.map(async (client) =>
      'pieces' in client ? statuses(await play(port, client, PATIENCE_MS)) : playHttp2(port, client, PATIENCE_MS),
    ),
  )
  let written = 0
  for (const [i, received] of responses.entries()) {
    const client = clients[i] as Client | Http2Client
    must(
      received.every((status) => STATUSES.includes(status)),
      'statuses that a server may give',
      [what, received],
    )
    if (!('pieces' in client)) {
      for (const { pieces } of client.streams) for (const bytes of pieces) written += bytes
      continue
    }
    written += client.pieces.join('').length
    // An error of Sluice would be a 500 for a correct client.
    if (client.requests === undefined) continue
    must(received.length <= client.requests, 'at most one response for each request', [what, received])
    if (!SETUPS[name]) must(!received.includes(500), 'no error for a correct client', [what, received])
  }
  const state = await freed(server, setup, what)
  must(state.mostRead <= MOST_BYTES, 'bodies within the cap', [what, state])
  // Pending bodies end, and are settled, a moment after their connections.
  must(state.bytes <= written, 'no more bytes charged than were sent', [what, state, written])

  await server.order({ app: setup, expect: 'single' })
  const next = server.framework.endsWith('HTTP/2')
    ? await playHttp2(port, { streams: [NEXT], pauseMs: 0, end: 'wait' }, SERVED_WITHIN_MS)
    : statuses(await play(port, LAST, SERVED_WITHIN_MS))
  must(SETUPS[name] ? next.length === 1 : next.join() === '200', 'the next client to be served', [what, next])
  await freed(server, setup, what)
}

const NEXT = { method: 'GET', path: '/', pieces: [], end: 'end' } as const
const LAST: Client = {
  pieces: ['GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
  ...{ pauseMs: 0, end: 'wait', requests: 1 },
}

/** Waits until everything that connections took is freed, without an error. */
async function freed(server: FuzzedServer, setup: number, what: string): Promise<State> {
  let state = await server.order({ app: setup })
  let { mostRead } = state
  const isFreed = async () => {
    state = await server.order({ app: setup })
    mostRead = Math.max(mostRead, state.mostRead)
    return state.faults.length > 0 || (state.connections === 0 && state.permits === PERMITS)
  }
  await until(`all resources are freed: ${what}`, isFreed).catch(() => {
    must(false, 'no connection left, and every permit free', [what, state])
  })
  must(state.faults.length === 0, 'no error that would have ended the process', [what, ...state.faults])
  return { ...state, mostRead }
}

const connections = ({ server }: BodyApp) =>
  new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))

/** The remaining units of the limits, in order. */
const left = async ({ limiter }: BodyApp) => (await limiter.peek('everyone')).limits.map(({ remaining }) => remaining)

test.each(Object.keys(BODY_APPS))(
  '%s: pipelined requests release their permits when their connection breaks, and run no handler later',
  async (framework) => {
    const make = BODY_APPS[framework] as (typeof BODY_APPS)[string]
    const options = {
      ...{ name: 'behind', store: memoryStore(), key: everyone() },
      limits: [concurrency({ limit: 3, ttl: '1h' }), slidingLog({ limit: 3, window: '1h' })],
      respond: queue({ maxWait: '1000d' }),
    }
    let finish = () => {}
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const app = await make(options, async () => {
      await finished
      return { status: 200, text: 'done' }
    })
    await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
    try {
      const socket = await opened((app.server.address() as AddressInfo).port)
      // Three requests are admitted, and two wait in the queue.
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5))
      await until('three are in flight', () => app.ran.length === 3)
      expect((await left(app))[0]).toBe(0)
      socket.resetAndDestroy()
      await until('no connection is left', async () => (await connections(app)) === 0)
      expect((await left(app))[0]).toBe(0)
      finish()
      await until('every permit is free', async () => (await left(app))[0] === 3)
      await app.limiter.reset('everyone')
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(app.ran.length).toBe(3)
    } finally {
      app.server.close()
      app.server.closeAllConnections()
    }
  },
)

const CROWD = 240
const HOLDING = ['queue', 'delay', 'tarpit'] as const

const holding = (name: (typeof HOLDING)[number]): Responder =>
  ({
    queue: queue({ maxWait: '1000d', size: 50, maxConnections: 60 }),
    delay: delay({ max: '1000d', maxConnections: 60 }),
    tarpit: tarpit({ for: '1h', maxConnections: 60 }),
  })[name]

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test.each(Object.keys(BODY_APPS).flatMap((framework) => HOLDING.map((name) => [framework, name] as const)))(
  '%s: a crowd in a %s is held up to its bounds, and leaves nothing when it disconnects',
  async (framework, name) => {
    const make = BODY_APPS[framework] as (typeof BODY_APPS)[string]
    const store = memoryStore()
    const limits = [slidingLog({ limit: 1, window: '30m' })]
    const options = { name: 'crowd', store, key: everyone(), limits, respond: holding(name) }
    const app = await make(options, async () => ({ status: 200, text: 'done' }))
    await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
    const { port } = app.server.address() as AddressInfo
    try {
      await app.limiter.consume('everyone')
      const timersBefore = timers()
      const ask = async (text: string) => {
        const socket = await opened(port)
        let answer = ''
        socket.setEncoding('latin1').on('data', (chunk: string) => {
          answer += chunk
        })
        socket.write(text)
        return { socket, answered: () => statuses(answer).length > 0 }
      }
      const whole = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
      const crowd = await Promise.all(
        // Every fourth request never finishes its head; timeouts of the server end those.
        Array.from({ length: CROWD }, (_, n) => ask(n % 4 === 3 ? whole.slice(0, 20) : whole)),
      )
      const held = name === 'queue' ? 50 : 60
      const refused = (CROWD * 3) / 4 - held
      await until(`${refused} are refused`, () => crowd.filter(({ answered }) => answered()).length === refused)

      for (const { socket } of crowd) socket.resetAndDestroy()
      await until('no connection is left', async () => (await connections(app)) === 0)
      // The room must not go to clients that have disconnected.
      await app.limiter.reset('everyone')
      const { socket, answered } = await ask(whole)
      await until('the next is served', answered)
      socket.destroy()
      expect(app.ran.length).toBe(1)
      await until('no timer is left', () => timers() <= timersBefore + 3)

      // Every slot is free again.
      const again = await Promise.all(Array.from({ length: held + 5 }, () => ask(whole)))
      await until('five are refused', () => again.filter(({ answered }) => answered()).length === 5)
      for (const { socket } of again) socket.destroy()
      // Koa itself reports connections that are reset.
      expect(app.errors.filter((error) => (error as { code?: string }).code !== 'ECONNRESET')).toEqual([])
    } finally {
      app.server.close()
      app.server.closeAllConnections()
    }
  },
)
