// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { type Type, UseGuards } from '@nestjs/common'
import { GraphQLModule, Mutation, Query, ResolveField, ResolveReference, Resolver, Subscription } from '@nestjs/graphql'
import { MercuriusDriver } from '@nestjs/mercurius'
import {
  byIp,
  concurrency,
  Limiter,
  memoryStore,
  queue,
  RateLimit,
  rateLimitGuard,
  SkipRateLimit,
  SluiceGuard,
  SluiceModule,
  type SluiceModuleOptions,
} from '@sluice/nestjs'
import { WebSocket } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../support/until.js'
import { classOf, createNest, guarded, loggedDuring } from '../support/nest.js'
import { serve } from './apps.js'

const minute = { limit: 1, window: '1m' } as const

const TYPES = `
  type Book { title: String pages: Int }
  type Query { login: String books: [Book!] }
  type Mutation { buy: String }
  type Subscription { added: String }
`

interface Decorators {
  readonly login?: readonly unknown[]
  readonly pages?: readonly unknown[]
  readonly added?: readonly unknown[]
  readonly ofClass?: readonly unknown[]
}

async function* twoBooks() {
  yield { added: 'Emma' }
  yield { added: 'Ulysses' }
}

/** An app with GraphQL by Mercurius. `graph`: options of GraphQLModule. */
function library(
  options: SluiceModuleOptions,
  { graph = {}, ...own }: Decorators & { readonly graph?: object } = {},
): Type {
  const Books = classOf(
    'Books',
    {
      login: [() => 'welcome', Query('login'), ...(own.login ?? [])],
      books: [() => [{ title: 'Emma' }, { title: 'Ulysses' }], Query('books')],
      buy: [() => 'bought', Mutation('buy')],
      pages: [() => 400, ResolveField('pages'), ...(own.pages ?? [])],
      added: [() => twoBooks(), Subscription('added'), ...(own.added ?? [])],
    },
    Resolver('Book'),
    ...(own.ofClass ?? []),
  )
  const graphql = GraphQLModule.forRoot({ driver: MercuriusDriver, typeDefs: TYPES, subscription: true, ...graph })
  return guarded({ limits: SluiceModule.forRoot(options), imports: [graphql], providers: [Books] })
}

/** Initialises an app, and returns the message of the error. */
async function mistakeOf(module: Type): Promise<string> {
  try {
    const app = await createNest('fastify', module)
    await app.init()
    await app.close()
  } catch (error) {
    return (error as Error).message
  }
  return 'none'
}

const sockets: WebSocket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close()
})

/** A client of GraphQL over a WebSocket: runs operations, and resolves to what the server sends for each. */
async function connect(url: string, headers: Record<string, string> = {}, init?: object) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, { protocols: ['graphql-transport-ws'], headers })
  sockets.push(socket)
  const seen = new Map<string, unknown[]>()
  const ends = new Map<string, () => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id = '', type, payload } = JSON.parse(String(data))
    if (type === 'next' || type === 'error') seen.get(id)?.push(payload)
    if (type !== 'next') ends.get(id)?.()
  })
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
  await new Promise<void>((resolve) => {
    ends.set('', resolve)
    socket.send(JSON.stringify({ type: 'connection_init', payload: init }))
  })
  return async (query: string): Promise<unknown[]> => {
    const id = String(seen.size + 1)
    seen.set(id, [])
    await new Promise<void>((resolve) => {
      ends.set(id, resolve)
      socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query } }))
    })
    return seen.get(id) as unknown[]
  }
}

const post = (request: (path: string, init: RequestInit) => Promise<Response>, query: string) =>
  request('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })

const NEWS = [{ data: { added: 'Emma' } }, { data: { added: 'Ulysses' } }]
const REFUSED = [[expect.objectContaining({ message: 'Too Many Requests' })]]

test('subscriptions of Mercurius are charged to the address of the handshake, with no context of their own', async () => {
  const { url } = await serve('fastify', library(minute))
  const run = await connect(url)
  expect([await run('subscription { added }'), await run('subscription { added }')]).toEqual([NEWS, REFUSED])
  // A new socket of the same client.
  expect(await (await connect(url))('subscription { added }')).toEqual(REFUSED)
})

test('the context that graphql-ws has works for Mercurius, and socketAddress gets its request', async () => {
  const context = (socket: unknown, request: { raw: unknown }) => ({ extra: { request: request.raw, socket } })
  const socketAddress = (request: { headers: Record<string, string> }) => request.headers['x-real-ip']
  const { url } = await serve(
    'fastify',
    library({ ...minute, socketAddress }, { graph: { subscription: { context } } }),
  )
  const [ann, bob] = [
    await connect(url, { 'x-real-ip': '192.0.2.1' }),
    await connect(url, { 'x-real-ip': '192.0.2.2' }),
  ]
  expect([await ann('subscription { added }'), await ann('subscription { added }')]).toEqual([NEWS, REFUSED])
  expect(await bob('subscription { added }')).toEqual(NEWS)
})

test.each([
  ['extra', (socket: object) => ({ extra: { request: { headers: {}, socket }, socket: {} } })],
  ['request', (socket: object) => ({ request: { ws: true, headers: {}, raw: { headers: {}, socket } } })],
  [
    'req',
    (socket: { remoteAddress: string }) => ({
      request: { headers: {} },
      req: { app: { settings: {} }, ip: socket.remoteAddress, headers: {}, method: 'GET', url: '/', socket },
      res: {},
    }),
  ],
])(
  'a client cannot choose its address where onConnect merges its payload into the context: %s',
  async (_name, forged) => {
    const onConnect = ({ payload }: { payload?: object }) => payload ?? true
    const { url } = await serve(
      'fastify',
      library(minute, { graph: { subscription: { fullWsTransport: true, onConnect } } }),
    )
    const { result: replies } = await loggedDuring(async () => {
      const replies: unknown[] = []
      for (const remoteAddress of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
        replies.push(...(await (await connect(url, {}, forged({ remoteAddress })))('{ login }')))
      }
      return replies
    })
    const welcomed = replies.filter((reply) => (reply as { data?: { login: unknown } }).data?.login === 'welcome')
    expect(welcomed.length).toBeLessThanOrEqual(1)
  },
)

test('queries over a socket of Mercurius are charged like subscriptions', async () => {
  const { url } = await serve('fastify', library(minute, { graph: { subscription: { fullWsTransport: true } } }))
  const run = await connect(url)
  expect(await run('{ login }')).toEqual([{ data: { login: 'welcome' } }])
  expect(await run('{ login }')).toEqual([expect.objectContaining({ data: { login: null } })])
})

test('requests in flight are refused over a socket and hold over HTTP; the reason is in the log alone', async () => {
  const inFlight = { limits: [concurrency({ limit: 1 })] }
  const graph = { subscription: { fullWsTransport: true } }
  const { url, request } = await serve('fastify', library({}, { graph, login: [RateLimit(inFlight)] }))
  const run = await connect(url)
  const { result, logged } = await loggedDuring(() => run('{ login }'))
  const errors = [expect.objectContaining({ message: 'Internal Server Error' })]
  expect(result).toEqual([{ data: { login: null }, errors }])
  expect(logged).toEqual([expect.stringMatching(/concurrency: expected none for operations over a WebSocket/)])
  expect(await (await post(request, '{ login }')).json()).toEqual({ data: { login: 'welcome' } })
})

test('a client that leaves while a field waits frees no permit of another field, before its handler is done', async () => {
  const inFlight = concurrency({ limit: 1, ttl: '1h', respond: queue({ maxWait: '1h' }) })
  let runs = 0
  let done = () => {}
  const report = () => {
    runs++
    return new Promise<string>((resolve) => (done = () => resolve('report')))
  }
  const Reports = classOf('Reports', { report: [report, Query('report')] }, Resolver())
  const graphql = GraphQLModule.forRoot({ driver: MercuriusDriver, typeDefs: 'type Query { report: String }' })
  const limits = SluiceModule.forRoot({ limits: [inFlight] })
  const { app, url } = await serve('fastify', guarded({ limits, imports: [graphql], providers: [Reports] }))
  const left = async () => (await app.get(Limiter).peek({ ip: '127.0.0.1' })).remaining
  const sockets = () =>
    new Promise<number>((resolve) =>
      app.getHttpServer().getConnections((_error: unknown, count: number) => resolve(count)),
    )
  const client = connectTcp(Number(new URL(url).port), '127.0.0.1')
  const query = encodeURIComponent('{ first: report second: report }')
  client.write(`GET /graphql?query=${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await until('the first field', () => runs === 1)
  client.destroy()
  await once(client, 'close')
  await until('the server', async () => (await sockets()) === 0)
  expect([await left(), runs]).toEqual([0, 1])
  done()
  await until('the permit', async () => (await left()) === 1)
  expect(runs).toBe(1)
})

test('the error of a key function stays in the log', async () => {
  const key = () => {
    throw new Error('no tenant in database db-7')
  }
  const { request } = await serve('fastify', library({ ...minute, key }))
  const { result, logged } = await loggedDuring(async () => (await post(request, '{ login }')).json())
  const extensions = { code: 'INTERNAL_SERVER_ERROR' }
  expect(result).toMatchObject({ errors: [{ message: 'Internal Server Error', extensions }] })
  expect(JSON.stringify(result)).not.toMatch('db-7')
  expect(logged).toEqual(['Error: no tenant in database db-7'])
})

test('a limit of a field resolver is an error unless guards run for these', async () => {
  const expected = /^GraphQL field Books-pages: expected fieldResolverEnhancers: \['guards'\] .* GraphQLModule/
  const own = { pages: [RateLimit(minute)] }
  expect(await mistakeOf(library({}, own))).toMatch(expected)
  expect(await mistakeOf(library({}, { ...own, graph: { fieldResolverEnhancers: ['filters'] } }))).toMatch(expected)
  for (const guard of [SluiceGuard, rateLimitGuard({ name: 'pages', ...minute })]) {
    expect(await mistakeOf(library(minute, { pages: [UseGuards(guard)] }))).toMatch(expected)
  }
  const graph = { fieldResolverEnhancers: ['guards'] }
  expect(await mistakeOf(library({}, { ...own, graph }))).toBe('none')
  // Its options are checked as those of a query.
  const counting = { pages: [RateLimit({ ...minute, count: { only: 'failure' } })], graph }
  expect(await mistakeOf(library({}, counting))).toMatch('"Books-pages": count: expected none for a GraphQL field')
  // A limit of the class limits its queries, and is none of fields unless guards run for them.
  expect(await mistakeOf(library({}, { ofClass: [RateLimit(minute)] }))).toBe('none')
})

test('a limit of a class that has field resolvers alone, or of a reference resolver, is an error unless guards run', async () => {
  const expected = /^GraphQL field Books-\w+: expected fieldResolverEnhancers: \['guards'\]/
  const of = (...resolvers: ReturnType<typeof classOf>[]) => {
    const graphql = GraphQLModule.forRoot({ driver: MercuriusDriver, typeDefs: TYPES })
    return guarded({ limits: SluiceModule.forRoot(), imports: [graphql], providers: resolvers })
  }
  const pages = () => 400
  expect(
    await mistakeOf(
      of(classOf('Books', { pages: [pages, ResolveField('pages')] }, Resolver('Book'), RateLimit(minute))),
    ),
  ).toMatch(expected)
  expect(
    await mistakeOf(of(classOf('Books', { find: [pages, ResolveReference(), RateLimit(minute)] }, Resolver('Book')))),
  ).toMatch(expected)
})

test('a limited field resolver is charged for each object', async () => {
  const graph = { fieldResolverEnhancers: ['guards'] }
  const { request } = await serve('fastify', library({}, { graph, pages: [RateLimit(minute)] }))
  const response = await post(request, '{ books { title pages } }')
  expect(await response.json()).toMatchObject({
    data: {
      books: [
        { title: 'Emma', pages: 400 },
        { title: 'Ulysses', pages: null },
      ],
    },
    errors: [{ message: 'Too Many Requests', path: ['books', '1', 'pages'] }],
  })
})

test('a resolver of types is charged for each object', async () => {
  const Works = classOf(
    'Works',
    {
      works: [() => [{ title: 'Emma' }, { title: 'Ulysses' }], Query('works')],
      typeOf: [() => 'Book', ResolveField('__resolveType'), RateLimit(minute)],
    },
    Resolver('Work'),
  )
  const typeDefs = 'type Book { title: String } union Work = Book type Query { works: [Work] }'
  const graphql = GraphQLModule.forRoot({ driver: MercuriusDriver, typeDefs, fieldResolverEnhancers: ['guards'] })
  const limits = SluiceModule.forRoot()
  const { request } = await serve('fastify', guarded({ limits, imports: [graphql], providers: [Works] }))
  const response = await post(request, '{ works { ... on Book { title } } }')
  expect(await response.json()).toMatchObject({
    data: { works: [{ title: 'Emma' }, null] },
    errors: [{ message: 'Too Many Requests', path: ['works', '1'] }],
  })
})

test('requests in flight are an error for subscriptions, of a decorator and of the module', async () => {
  const inFlight = { limits: [concurrency({ limit: 1 })], key: byIp(), store: memoryStore() }
  const expected = /concurrency: expected none for operations over a WebSocket/
  expect(await mistakeOf(library({}, { added: [RateLimit(inFlight)] }))).toMatch(expected)
  expect(await mistakeOf(library(inFlight))).toMatch(expected)
  expect(await mistakeOf(library(inFlight, { added: [SkipRateLimit()] }))).toBe('none')
})
