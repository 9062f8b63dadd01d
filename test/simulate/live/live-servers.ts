import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore } from '@sluice/core'
import { rateLimit as expressLimit } from '@sluice/express'
import { rateLimit as fastifyLimit } from '@sluice/fastify'
import { rateLimit as koaLimit } from '@sluice/koa'
import { policies } from '@sluice/policies'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import { TurnedClock } from './turned-clock.js'

/** A request of a log, and what its handler does. */
export interface Visit {
  readonly at: number
  readonly ip: string
  readonly user: string | undefined
  readonly tier: string
  readonly method: string
  readonly target: string
  readonly status: number
  readonly durationMs: number
  readonly bytes: number
}

/** What became of a request. */
export interface Fate {
  isAdmitted: boolean
  /** From its arrival until it was admitted or refused. */
  decidedMs: number
  /** From the response of its handler until that has been sent. */
  sendingMs: number
}

/** The functions that documents name. They read the same of live requests and of records. */
export const RESOLVERS = {
  keys: { user: (_: unknown, context: Context) => context.header('x-user') },
  tiers: { plan: (_: unknown, context: Context) => context.header('x-tier') ?? 'free' },
  costs: {
    pages: (_: unknown, context: Context) => Number(new URLSearchParams(context.target.split('?')[1]).get('n') ?? 1),
  },
}

interface Context {
  readonly target: string
  header(name: string): string | undefined
}

export const SERVERS = ['express', 'koa', 'fastify'] as const

/** Serves visits by a real server whose clock is turned to the time of each. */
export async function serveLive(
  framework: (typeof SERVERS)[number],
  document: object,
  visits: readonly Visit[],
): Promise<Fate[]> {
  const clock = new TurnedClock((visits[0] as Visit).at)
  const live = new Live(clock, visits)
  const loaded = await policies.from({ object: document, ...RESOLVERS })
  const options = { policies: loaded, store: memoryStore({ clock: () => Math.floor(clock.now) }) }
  const server = await START[framework](options, live)
  const agent = new Agent({ keepAlive: true })
  clock.install()
  try {
    for (const [id, visit] of visits.entries()) {
      await clock.turnTo(visit.at, () => live.quiet())
      await live.visit(server, agent, id)
    }
    while (live.open > 0) await clock.turnTo(clock.now + 1000, () => live.quiet())
  } finally {
    clock.restore()
    agent.destroy()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await loaded.close()
  }
  return live.fates
}

/** The requests of one run. */
class Live {
  readonly fates: Fate[] = []
  /** Requests whose response has not been sent. */
  open = 0
  readonly #clock: TurnedClock
  readonly #visits: readonly Visit[]
  readonly #responses = new Set<ServerResponse>()
  #onArrival: (() => void) | undefined

  constructor(clock: TurnedClock, visits: readonly Visit[]) {
    this.#clock = clock
    this.#visits = visits
  }

  visitOf(raw: IncomingMessage): Visit {
    return this.#visits[Number(raw.headers['x-id'])] as Visit
  }

  /** In front of the limiter. */
  arrived(raw: IncomingMessage, response: ServerResponse): void {
    const id = Number(raw.headers['x-id'])
    const from = this.#clock.now
    const fate: Fate = { isAdmitted: false, decidedMs: Number.NaN, sendingMs: 0 }
    this.fates[id] = fate
    this.open++
    this.#responses.add(response)
    response.on('close', () => {
      this.open--
      this.#responses.delete(response)
      if (!fate.isAdmitted) fate.decidedMs = this.#clock.now - from
      else fate.sendingMs = this.#clock.now - from - fate.decidedMs - (this.#visits[id] as Visit).durationMs
    })
    this.#onArrival?.()
  }

  /** The handler begins. Resolves when it responds. */
  async handled(raw: IncomingMessage): Promise<Visit> {
    const id = Number(raw.headers['x-id'])
    const visit = this.#visits[id] as Visit
    const fate = this.fates[id] as Fate
    fate.isAdmitted = true
    fate.decidedMs = this.#clock.now - visit.at
    if (visit.durationMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, visit.durationMs))
    return visit
  }

  async visit(server: Server, agent: Agent, id: number): Promise<void> {
    const { ip, method, target, user, tier } = this.#visits[id] as Visit
    const arrived = new Promise<void>((resolve) => {
      this.#onArrival = resolve
    })
    const headers = { 'x-id': String(id), 'x-tier': tier, ...(user !== undefined && { 'x-user': user }) }
    const { port } = server.address() as AddressInfo
    const sent = request({ port, host: '127.0.0.1', localAddress: ip, method, path: target, headers, agent })
    sent.on('response', (response) => response.resume())
    sent.on('error', () => {})
    sent.end()
    await arrived
    await this.quiet()
  }

  /** Until nothing goes on without a timer: bytes that may leave have left. */
  async quiet(): Promise<void> {
    for (let turns = 0; turns < 3; turns++) {
      await new Promise((resolve) => setImmediate(resolve))
      const isSending = [...this.#responses].some((each) => each.writableEnded && !each.writableFinished)
      if (isSending || [...this.#responses].some((each) => each.writableLength > 0)) turns = 0
    }
  }
}

type Options = {
  readonly policies: Awaited<ReturnType<typeof policies.from>>
  readonly store: ReturnType<typeof memoryStore>
}

const START: Readonly<Record<(typeof SERVERS)[number], (options: Options, live: Live) => Promise<Server>>> = {
  async express(options, live) {
    const app = express()
    app.use((req, res, next) => {
      live.arrived(req, res)
      next()
    })
    app.use(expressLimit(options))
    app.use(async (req, res) => {
      const { status, bytes } = await live.handled(req)
      res.status(status).end(Buffer.alloc(bytes))
    })
    return listening(createServer(app))
  },
  async koa(options, live) {
    const app = new Koa()
    app.use((ctx, next) => {
      live.arrived(ctx.req, ctx.res)
      return next()
    })
    app.use(koaLimit(options))
    app.use(async (ctx) => {
      const { status, bytes } = await live.handled(ctx.req)
      ctx.status = status
      ctx.body = Buffer.alloc(bytes)
    })
    return listening(createServer(app.callback()))
  },
  async fastify(options, live) {
    const app = Fastify()
    app.addHook('onRequest', async (request, reply) => live.arrived(request.raw, reply.raw))
    await app.register(fastifyLimit as never, options as never)
    app.all('/*', async (request, reply) => {
      const { status, bytes } = await live.handled(request.raw)
      return reply.code(status).send(Buffer.alloc(bytes))
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server
  },
}

function listening(server: Server): Promise<Server> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}
