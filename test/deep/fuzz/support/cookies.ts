import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import * as fastifyCookie from '@fastify/cookie'
import { byCookie } from '@sluice/core'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import cookieParser from 'cookie-parser'
import cookieParser146 from 'cookie-parser146'
import express from 'express'
import express4 from 'express4'
import fc from 'fast-check'
import fastify from 'fastify'
import * as fastifyCookie110 from 'fastify-cookie110'
import Koa from 'koa'
import { noting, type Seen } from './frameworks.js'
import { opened } from './wire.js'

export const NAME = 'sid'

/** Reads the value of `NAME` with a cookie parser; undefined for none. */
export type Parser = (cookie: string) => unknown

const koa = new Koa()
koa.silent = true

function byCookieParser(make: typeof cookieParser): Parser {
  const middleware = make()
  return (cookie) => {
    const request = { headers: { cookie } } as { headers: IncomingHttpHeaders; cookies?: Record<string, unknown> }
    middleware(request as never, {} as never, () => {})
    return request.cookies?.[NAME]
  }
}

function byFastifyCookie(module: object): Parser {
  const { parse } = module as { parse(cookie: string): Record<string, unknown> }
  return (cookie) => parse(cookie)[NAME]
}

/** The parsers of the frameworks without servers, each with its own version of `cookie`. */
export async function parsers(): Promise<Record<string, Parser>> {
  // The newest loads its parser when it is registered.
  await fastify({ pluginTimeout: 0 }).register(fastifyCookie.default).ready()
  return {
    'cookie-parser 1.4.6, cookie 0.4': byCookieParser(cookieParser146),
    'cookie-parser 1.4.7, cookie 0.7': byCookieParser(cookieParser),
    '@fastify/cookie 11.0, cookie 1': byFastifyCookie(fastifyCookie110),
    '@fastify/cookie 11.1, cookie 2': byFastifyCookie(fastifyCookie),
    'Koa, cookies 0.9': (cookie) => {
      const request = { headers: { cookie }, socket: {} } as unknown as IncomingMessage
      return koa.createContext(request, {} as ServerResponse).cookies.get(NAME)
    },
  }
}

/** The value of a request by the framework's parser, and its key by `byCookie` or the code of the error. */
export interface Sight extends Seen {
  readonly value?: unknown
}

/** Servers of every framework that respond with this sight. The limiter runs before the parser. */
export async function parsingServers(): Promise<Record<string, Server>> {
  const expressApp = (make: typeof express, parse: typeof cookieParser) => {
    const seen: Seen = {}
    const app = make()
    app.use(expressAdapter.rateLimit(noting(byCookie(NAME, { secret: false }), seen)))
    app.use(parse())
    app.use((req, res) => void res.json({ value: req.cookies[NAME], ...seen }))
    return createServer(app)
  }
  const fastifyApp = async (plugin: typeof fastifyCookie.default) => {
    const seen: Seen = {}
    const app = fastify({ pluginTimeout: 0 })
    await app.register(fastifyAdapter.rateLimit, noting(byCookie(NAME, { secret: false }), seen))
    await app.register(plugin)
    app.get('/', async (request) => ({ value: request.cookies[NAME], ...seen }))
    await app.ready()
    return app.server
  }
  const koaSeen: Seen = {}
  const koaApp = new Koa()
  koaApp.silent = true
  koaApp.use(koaAdapter.rateLimit(noting(byCookie(NAME, { secret: false }), koaSeen)))
  koaApp.use((ctx) => {
    ctx.body = { value: ctx.cookies.get(NAME), ...koaSeen }
  })
  return {
    'Express 5': expressApp(express, cookieParser),
    'Express 4': expressApp(express4, cookieParser146),
    Koa: createServer(koaApp.callback()),
    Fastify: await fastifyApp(fastifyCookie.default),
    'Fastify with cookie 1': await fastifyApp(fastifyCookie110.default as never),
  }
}

/** Sends requests to a server over one connection, byte for byte. */
export class Connection {
  readonly #port: number
  #socket: Socket | undefined

  constructor(server: Server) {
    this.#port = (server.address() as AddressInfo).port
  }

  /** Sends each text as a `Cookie` field of one request. Resolves to undefined if Node rejects the request. */
  async ask(cookies: readonly string[]): Promise<Sight | undefined> {
    this.#socket ??= await opened(this.#port)
    const socket = this.#socket
    const answer = new Promise<string>((resolve) => {
      let text = ''
      const read = (chunk: Buffer) => {
        text += chunk.toString('latin1')
        const [head = '', body] = text.split('\r\n\r\n')
        const [, length] = /content-length: (\d+)/i.exec(head) ?? []
        if (body !== undefined && body.length >= Number(length ?? 0)) end()
      }
      const end = () => {
        socket.off('data', read).off('close', end)
        resolve(text)
      }
      socket.on('data', read).on('close', end)
    })
    const fields = cookies.map((cookie) => `Cookie: ${cookie}\r\n`).join('')
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\n${fields}\r\n`, 'latin1')
    const text = await answer
    const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1').toString()
    if (text.startsWith('HTTP/1.1 200')) return JSON.parse(body) as Sight
    this.#socket = undefined
    socket.destroy()
    return undefined
  }

  close(): void {
    this.#socket?.destroy()
  }
}

/** Texts that a parser has to distinguish, or may not. Each character is one byte on the wire. */
const PIECES = [
  ...[' ', '\t', '\xa0', '\xa0\xa0', '\x85', '"', '""', "'", '\\', ',', '=', '%', '%2', '%20', '%22', '%25', '%C3%A9'],
  ...['%00', '%E0', 'é', '\xff', 'j:', 's:', '{}', 'REAL', '%52EAL', 'junk', 'x', NAME, 'sid=REAL', 'toString'],
]
const piece = fc.constantFrom(...PIECES)
const space = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: fc.constant(' ') },
  { weight: 1, arbitrary: fc.constantFrom('  ', '\t', ' \t', '\xa0', ' \xa0', '\x85') },
)
const name = fc.oneof(
  { weight: 6, arbitrary: fc.constant(NAME) },
  { weight: 1, arbitrary: fc.constantFrom('SID', 'xsid', 'sidx', `"${NAME}"`, '%73id', '', 'a', '__proto__') },
)
const value = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...['REAL', '"REAL"', '"REAL', '"REALx', 'REAL"', '%52EAL', '"%52EAL"', '%22REAL%22', '""REAL""', '" REAL "', ''],
      ...['""', '"', 'j:"REAL"', 'j:"\\u0052EAL"', 'j: "REAL"', 'j:{"a":1}', 'j:{"a": 1}', 'j:0', 'REAL%', 'REAL%E0'],
      ...['\xa0REAL', 'REAL\xa0', '"\xa0REAL"', 'RE"AL', '%2552EAL', 'junk', '"REAL"x', '%20REAL', '"REAL" x'],
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: piece, maxLength: 4 }) },
)
const pair = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(space, name, space, fc.constant('='), space, value, space).map((parts) => parts.join('')),
  },
  { weight: 1, arbitrary: fc.string({ unit: piece, maxLength: 3 }) },
)
const cookie = fc
  .tuple(fc.array(pair, { minLength: 1, maxLength: 4 }), fc.constantFrom(';', '; ', '; ', ';;', ' ; ', ', '))
  .map(([pairs, separator]) => pairs.join(separator))

/** The `Cookie` fields of one request, as characters of one byte. */
export const hostileCookies: fc.Arbitrary<readonly string[]> = fc.oneof(
  { weight: 4, arbitrary: cookie.map((text) => [text]) },
  { weight: 1, arbitrary: fc.array(cookie, { maxLength: 3 }) },
)
