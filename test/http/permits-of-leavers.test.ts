import type { ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import type { Server } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import { Controller, Get, Res } from '@nestjs/common'
import { concurrency, everyone, memoryStore } from '@sluice/core'
import { rateLimitGuard, SluiceModule } from '@sluice/nestjs'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { opened } from '../deep/fuzz/support/wire.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { byEffort } from '../support/effort.js'
import { until } from '../support/until.js'
import { classOf, createNest, guarded, PLATFORMS, type Platform } from './support/nest.js'
import { listen, PERMIT_APPS, PERMIT_APPS_HTTP2, type PermitAppFactory } from './support/permit-apps.js'
import { stop } from './support/permit-clients.js'

const RUNS = byEffort({ quick: 5, usual: 15, full: 1000 })
const TTL_MS = 3_600_000
/** Requests of one connection. */
const MOST = 4

/** The ways in which a handler responds once its work is done. */
const WAYS = {
  'res.end(await work)': async (res, work) => res.end(await work),
  'work.then(res.end.bind(res))': (res, work) => work.then(res.end.bind(res) as (text: string) => unknown),
  'end.call(res, await work)': async (res, work) => {
    const { end } = res
    Reflect.apply(end, res, [await work])
  },
  'await work; res.end()': async (res, work) => {
    await work
    res.end()
  },
  'await work; res.writeHead(204)': async (res, work) => {
    await work
    res.writeHead(204).end()
  },
  'res.write(await work); res.end()': async (res, work) => {
    res.write(await work)
    res.end()
  },
  'res.writeHead(200).end(await work)': async (res, work) => res.writeHead(200).end(await work),
  'source.pipe(res)': async (res, work) => Readable.from([await work]).pipe(res),
  'pipeline(working source, res)': (res, work) =>
    pipeline(async function* () {
      yield await work
    }, res),
} satisfies Record<string, (res: ServerResponse, work: Promise<string>) => unknown>

const requests = fc.array(
  fc.record({
    way: fc.constantFrom(...(Object.keys(WAYS) as (keyof typeof WAYS)[])),
    /** When its work is done: before the client leaves, in the same turn, or later. */
    done: fc.constantFrom('before', 'with', 'after', 'after'),
    /** Whether the limiter decides after the client has left. */
    isLate: fc.constantFrom(false, false, false, true),
  }),
  { minLength: 1, maxLength: MOST },
)

/** A response whose end is known to its test. */
class Exchange {
  readonly way: keyof typeof WAYS
  /** Whether the permit is held when the client has left. */
  readonly outlives: boolean
  response: ServerResponse | undefined
  hasRun = false
  hasClosed = false
  decide = () => {}
  work = () => {}
  readonly decided: Promise<void>
  readonly worked: Promise<string>

  constructor({ way, done, isLate }: { way: keyof typeof WAYS; done: string; isLate: boolean }) {
    this.way = way
    this.outlives = done === 'after' && way !== 'res.writeHead(200).end(await work)'
    this.decided = isLate
      ? new Promise((resolve) => {
          this.decide = resolve
        })
      : Promise.resolve()
    this.worked = new Promise((resolve) => {
      this.work = () => resolve('done')
    })
  }

  /** Node closes some streams of HTTP/2 without an event where a session ends during a write. */
  get isOver(): boolean {
    const { stream } = (this.response ?? {}) as { stream?: { closed: boolean } }
    return this.hasClosed || stream?.closed === true
  }

  arrive(response: ServerResponse): void {
    this.response = response
    response.on('close', () => {
      this.hasClosed = true
    })
  }

  async handle(response: ServerResponse): Promise<void> {
    this.hasRun = true
    try {
      await WAYS[this.way](response, this.worked)
    } catch {
      // The response of a client that has left.
    }
  }
}

interface Connection {
  /** Sends requests for these targets, without waiting for responses. */
  send(targets: readonly string[]): void
  leave(isReset: boolean): void
}

async function overHttp1(port: number): Promise<Connection> {
  const socket = await opened(port)
  socket.resume()
  return {
    send: (targets) => socket.write(targets.map((target) => `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`).join('')),
    leave: (isReset) => (isReset ? socket.resetAndDestroy() : socket.destroy()),
  }
}

async function overHttp2(port: number): Promise<Connection> {
  const session = connectHttp2(`http://127.0.0.1:${port}`).on('error', () => {})
  const send = (target: string) =>
    session
      .request({ ':path': target })
      .on('error', () => {})
      .resume()
  const streams: ReturnType<typeof send>[] = []
  return {
    send: (targets) => streams.push(...targets.map(send)),
    leave(isReset) {
      if (isReset) for (const stream of streams) stream.close(8)
      setTimeout(() => session.destroy(), isReset ? 1000 : 0).unref()
    },
  }
}

const nestApp =
  (platform: Platform): PermitAppFactory =>
  async ([options], { takeOver }) => {
    const guard = rateLimitGuard(options as never)
    const raw = (given: ServerResponse & { raw?: ServerResponse; hijack?(): void }) => {
      given.hijack?.()
      takeOver?.({ raw: given.raw ?? given, verdict: undefined, setStatus: () => {} })
    }
    const toResponse: MethodDecorator = (target, key) => Res()(target, key, 0)
    const Raw = classOf('Raw', { raw: [raw, Get('raw'), toResponse] }, Controller())
    const limits = SluiceModule.forRoot({ limit: 1e6, window: '1h' })
    const app = await createNest(platform, guarded({ limits, controllers: [Raw] }))
    app.useGlobalGuards(guard)
    await app.init()
    if (platform === 'fastify') await app.getHttpAdapter().getInstance().ready()
    return { server: app.getHttpServer() as Server, limiter: guard.limiter as never }
  }

const APPS: readonly (readonly [string, PermitAppFactory, (port: number) => Promise<Connection>])[] = [
  ...Object.entries(PERMIT_APPS).map(([name, make]) => [name, make, overHttp1] as const),
  ...PLATFORMS.map((platform) => [`Nest on ${platform}`, nestApp(platform), overHttp1] as const),
  ...Object.entries(PERMIT_APPS_HTTP2).map(([name, make]) => [name, make, overHttp2] as const),
]

const closing = closedAfterEach()
// The interval in which permits are renewed; other timers are real.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

describe.each(APPS)('%s', (_name, make, connect) => {
  test('a permit is free once its handler has responded, in whatever way and whenever its client leaves', async () => {
    const exchanges: Exchange[] = []
    const of = (response: ServerResponse) => exchanges[Number(response.req.url?.split('?')[1])] as Exchange
    const { server, limiter } = await make(
      [
        {
          name: 'busy',
          store: memoryStore(),
          limits: [concurrency({ limit: MOST, ttl: TTL_MS })],
          key: everyone(),
          skip: (_request: unknown, { response }: { response: ServerResponse }) => {
            of(response).arrive(response)
            return of(response).decided.then(() => false)
          },
        } as never,
      ],
      { takeOver: ({ raw }) => void of(raw).handle(raw) },
    )
    const port = await listen(server)
    closing.push(() => stop(server))
    const taken = async () => MOST - (await limiter.peek('everyone')).remaining
    const quick = { everyMs: 1, withinMs: 5_000 }

    await fc.assert(
      fc.asyncProperty(requests, fc.boolean(), async (cases, isReset) => {
        const first = exchanges.length
        const own = cases.map((each) => new Exchange(each))
        exchanges.push(...own)
        const connection = await connect(port)
        connection.send(own.map((_, i) => `/raw?${first + i}`))
        await until('all requests arrive', () => own.every(({ response }) => response), quick)
        const works = (done: string) => own.forEach((each, i) => cases[i]?.done === done && each.work())
        await until('handlers run', () => own.every(({ hasRun }, i) => hasRun || cases[i]?.isLate), quick)
        works('before')
        await setImmediate()
        works('with')
        connection.leave(isReset)
        await until('the server notices', () => own.every((each) => each.isOver), quick)
        await vi.advanceTimersByTimeAsync(TTL_MS / 3)
        for (const each of own) each.decide()
        await until('all handlers run', () => own.every(({ hasRun }) => hasRun), quick)
        const working = own.filter(({ outlives }) => outlives)
        await until(`${working.length} permits are taken`, async () => (await taken()) === working.length, quick)
        for (const [i, each] of working.entries()) {
          await setImmediate()
          expect(await taken()).toBe(working.length - i)
          each.work()
          await until(`"${each.way}" frees its permit`, async () => (await taken()) < working.length - i, quick)
        }
        works('after')
        expect(await taken()).toBe(0)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  })
})
