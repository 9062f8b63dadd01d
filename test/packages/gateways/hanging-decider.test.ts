// Release: runs gateways.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { startHaproxy } from '../../support/gateways.js'
import { until } from '../../support/until.js'
import { type App, send, startApp, withPorts } from './support.js'

const ADMITTED = 'HTTP/1.1 204 No Content\r\nX-Sluice-Decided-By: store\r\nConnection: close\r\n\r\n'

const stops = closedAfterEach()

/** A decider whose responses are made by the test. */
async function startStub(): Promise<{ port: number; waiting: Set<Socket>; calls: () => number }> {
  const waiting = new Set<Socket>()
  let calls = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      calls++
      waiting.add(socket)
    })
    socket.once('close', () => waiting.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(async () => {
    for (const socket of waiting) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as { port: number }).port, waiting, calls: () => calls }
}

async function startFront(mode: 'closed' | 'open', decider: number): Promise<{ front: number; app: App }> {
  const app = await startApp()
  stops.push(() => app.stop())
  const front = await freePort()
  const settings = withPorts('haproxy/haproxy.cfg', { 8080: front, 3000: app.port, 9190: decider })
  const haproxy = await startHaproxy(settings.replace('/v1/decide closed', `/v1/decide ${mode}`), front)
  stops.push(() => haproxy.stop())
  return { front, app }
}

/** A status, and its duration in ms. */
async function timed(front: number): Promise<{ status: number; tookMs: number }> {
  const from = performance.now()
  const { status } = await send(front, 'GET /')
  return { status, tookMs: performance.now() - from }
}

/** The bound of a wait that should take 2 s, and could take 8 s: a busy machine adds to it. */
const LONGEST_MS = 5000

describe.each([
  { mode: 'closed', away: 503 },
  { mode: 'open', away: 200 },
] as const)('HAProxy, $mode, with a decider that hangs', ({ mode, away }) => {
  test('HAProxy waits for a hanging decider once, then probes it with one request at a time', async () => {
    const stub = await startStub()
    const { front } = await startFront(mode, stub.port)
    const first = await timed(front)
    expect([first.status, first.tookMs < LONGEST_MS, stub.calls()]).toEqual([away, true, 1])
    let maxCalls = 0
    // One of these tries the decider again, after a second.
    while (stub.calls() < 2) {
      const burst = await Promise.all(Array.from({ length: 8 }, () => timed(front)))
      maxCalls = Math.max(maxCalls, stub.calls())
      expect(burst.every(({ status, tookMs }) => status === away && tookMs < LONGEST_MS)).toBe(true)
    }
    expect(maxCalls).toBe(2)
  })

  test.each([5, 400])('bytes that trickle in every %i ms do not prolong a wait of HAProxy', async (everyMs) => {
    const stub = await startStub()
    const { front } = await startFront(mode, stub.port)
    const trickle = `${ADMITTED.slice(0, 40)}${'a'.repeat(10_000)}`
    let sent = 0
    const timer = setInterval(() => {
      for (const socket of stub.waiting) socket.write(trickle[sent++] ?? 'a')
    }, everyMs)
    stops.push(async () => clearInterval(timer))
    const { status, tookMs } = await timed(front)
    expect([status, tookMs < LONGEST_MS]).toEqual([away, true])
  })

  test('HAProxy calls the decider once per request, even without a response', async () => {
    const stub = await startStub()
    const { front } = await startFront(mode, stub.port)
    const responding = timed(front)
    await until('the decider is called', () => stub.waiting.size === 1)
    for (const socket of stub.waiting) socket.destroy()
    expect((await responding).status).toBe(away)
    expect(stub.calls()).toBe(1)
  })
})

test('HAProxy calls a healthy decider for many requests at a time', async () => {
  const stub = await startStub()
  const { front, app } = await startFront('closed', stub.port)
  const responding = Promise.all(Array.from({ length: 8 }, () => send(front, 'GET /')))
  await until('the decider is called for all', () => stub.waiting.size === 8)
  for (const socket of stub.waiting) socket.end(ADMITTED)
  expect((await responding).map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect(app.seen).toHaveLength(8)
})

test('HAProxy calls a decider that responds again for every request', async () => {
  const stub = await startStub()
  const { front } = await startFront('closed', stub.port)
  expect((await send(front, 'GET /')).status).toBe(503)
  stub.waiting.clear()
  const responses = setInterval(() => {
    for (const socket of stub.waiting) socket.end(ADMITTED)
    stub.waiting.clear()
  }, 5)
  stops.push(async () => clearInterval(responses))
  await until('the decider is used again', async () => (await send(front, 'GET /')).status === 200)
  const before = stub.calls()
  const burst = await Promise.all(Array.from({ length: 8 }, () => send(front, 'GET /')))
  expect(burst.map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect(stub.calls()).toBe(before + 8)
})
