import type { AddressInfo } from 'node:net'
import {
  concurrency,
  delay,
  everyone,
  fixedWindow,
  memoryStore,
  queue,
  type Responder,
  reject,
  shadow,
  slidingLog,
  tarpit,
  throttle,
} from '@sluice/core'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { BODY_APPS, type BodyApp } from '../http/support/body-apps.js'
import { until } from '../support/until.js'
import { must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { type Client, client, opened, play, statuses } from './support/wire.js'

const PLACES = 4
const MOST_BYTES = 1000
const ALL_BYTES = 1_000_000

const RESPONDERS: Readonly<Record<string, Responder>> = {
  reject: reject(),
  queue: queue({ maxWait: 100, size: 3, maxConnections: 4 }),
  delay: delay({ max: 100, maxConnections: 4 }),
  tarpit: tarpit({ for: 30, maxConnections: 2 }),
  throttle: throttle({ bytesPerSecond: 50_000, after: 10 }),
  shadow: shadow({ learn: true }),
}

interface Running extends BodyApp {
  readonly what: string
  readonly port: number
  /** Bodies that handlers have read to their end. */
  readonly read: number[]
}

const apps: Running[] = []
for (const [framework, make] of Object.entries(BODY_APPS)) {
  for (const [name, respond] of Object.entries(RESPONDERS)) {
    const read: number[] = []
    const app = await make(
      {
        name: 'fuzz',
        store: memoryStore(),
        key: everyone(),
        limits: [
          concurrency({ limit: PLACES, ttl: '1h' }),
          slidingLog({ limit: 6, window: 50 }),
          fixedWindow({ limit: ALL_BYTES, window: '1d', unit: 'content-bytes' }),
        ],
        maxBodyBytes: MOST_BYTES,
        respond,
      },
      async (asked) => {
        read.push(Buffer.byteLength(await asked.body()))
        return { status: 200, text: 'x'.repeat(500) }
      },
    )
    await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
    apps.push({ ...app, what: `${framework}, ${name}`, port: (app.server.address() as AddressInfo).port, read })
  }
}
afterAll(() => {
  for (const { server } of apps) {
    server.close()
    server.closeAllConnections()
  }
})

const connections = ({ server }: BodyApp) =>
  new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))

/** What is left in the limits, in the order they are written in. */
const left = async ({ limiter }: BodyApp) => (await limiter.peek('everyone')).limits.map(({ remaining }) => remaining)

/** Everything that connections took is given back when they are gone. */
async function expectAllFreed(app: Running): Promise<void> {
  await until(`no connection is left: ${app.what}`, async () => (await connections(app)) === 0)
  await until(`every place is free: ${app.what}`, async () => (await left(app))[0] === PLACES)
}

/** Answers that a server may give to anybody: others would be an error of ours. */
const STATUSES = [200, 400, 408, 413, 417, 429, 431, 500, 501, 503, 505]

fuzz(
  'connections',
  'whatever clients send and whenever they leave, caps hold, all is freed, and the next one is served',
  {
    // Clients for each app at once, so that waiting is shared.
    inputs: fc.array(fc.array(client, { minLength: 1, maxLength: 5 }), {
      minLength: apps.length,
      maxLength: apps.length,
      size: 'max',
    }),
    dearness: 5000,
    async check(clients) {
      await Promise.all(apps.map((app, i) => checkOne(app, clients[i] as Client[])))
    },
  },
)

async function checkOne(app: Running, clients: readonly Client[]): Promise<void> {
  await app.limiter.reset('everyone')
  app.read.length = 0
  const answers = await Promise.all(clients.map((client) => play(app.port, client, 100)))
  await expectAllFreed(app)

  let written = 0
  for (const [i, answer] of answers.entries()) {
    const { pieces, requests } = clients[i] as (typeof clients)[number]
    written += pieces.join('').length
    const told = statuses(answer)
    must(
      told.every((status) => STATUSES.includes(status)),
      'statuses that a server may give',
      told,
    )
    // An error of ours would be a 500 to who did nothing wrong.
    if (requests === undefined) continue
    must(told.length <= requests, 'one answer for each request at most', told)
    must(!told.includes(500), 'no error for who did nothing wrong', [told, app.errors])
  }
  must(
    app.read.every((bytes) => bytes <= MOST_BYTES),
    'bodies within the cap',
    app.read,
  )
  const [, , bytes = 0] = await left(app)
  // Bodies under way end, and settle, a moment after their connections.
  must(ALL_BYTES - bytes <= written, 'no more bytes charged than were sent', [ALL_BYTES - bytes, written])

  await app.limiter.reset('everyone')
  const last = await play(
    app.port,
    { pieces: ['GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'], ...LATER },
    2000,
  )
  must(statuses(last).join() === '200', 'the next one to be served', last.slice(0, 100))
  await expectAllFreed(app)
}

test.each(Object.keys(BODY_APPS))(
  '%s: requests behind another on a connection release their permits when it breaks, and run no handler later',
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
      // Three are admitted, two wait in the queue.
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

const LATER = { pauseMs: 0, end: 'wait', requests: 1 } as const

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
  '%s: of hundreds that wait in a %s few are held, and when all vanish nothing is, and no handler has run',
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
        // Every fourth never finishes its head: the server's own timeouts end those.
        Array.from({ length: CROWD }, (_, n) => ask(n % 4 === 3 ? whole.slice(0, 20) : whole)),
      )
      const held = name === 'queue' ? 50 : 60
      const refused = (CROWD * 3) / 4 - held
      await until(`${refused} are refused`, () => crowd.filter(({ answered }) => answered()).length === refused)

      for (const { socket } of crowd) socket.resetAndDestroy()
      await until('no connection is left', async () => (await connections(app)) === 0)
      // Room at last; who has left must not be served by it.
      await app.limiter.reset('everyone')
      const { socket, answered } = await ask(whole)
      await until('the next is served', answered)
      socket.destroy()
      expect(app.ran.length).toBe(1)
      await until('no timer is left', () => timers() <= timersBefore + 3)

      // Every seat is free again.
      const again = await Promise.all(Array.from({ length: held + 5 }, () => ask(whole)))
      await until('five are refused', () => again.filter(({ answered }) => answered()).length === 5)
      for (const { socket } of again) socket.destroy()
      // Koa itself tells of connections that are reset.
      expect(app.errors.filter((error) => (error as { code?: string }).code !== 'ECONNRESET')).toEqual([])
    } finally {
      app.server.close()
      app.server.closeAllConnections()
    }
  },
)
