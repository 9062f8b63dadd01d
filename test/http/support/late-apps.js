// Apps whose handlers respond in every possible way, mostly late, each under its own path. Plain JavaScript, so that a
// separate process can run them on the build.
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { PassThrough, pipeline, Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import * as expressAdapter from '@sluice/express'
import * as fastifyAdapter from '@sluice/fastify'
import * as koaAdapter from '@sluice/koa'
import makeExpress from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'

/**
 * @typedef {import('./app.js').AnyOptions} AnyOptions
 * @typedef {import('node:http').ServerResponse} Response
 *
 * @typedef {object} LateApp
 * @property {import('node:net').Server} server
 * @property {import('@sluice/core').Limiter<string>[]} limiters in the order of the options
 * @property {string[]} ran paths of the handlers that have run
 * @property {unknown[]} errors that reached the framework's error handler
 * @property {Set<Readable>} sources streams of handlers that are still open
 * @property {number[]} read bytes of the bodies that handlers have read to their end
 * @property {string[]} called callbacks of writes and ends that were called
 *
 * @typedef {() => Promise<unknown>} Later when a late handler goes on
 * @typedef {(options: readonly AnyOptions[], later: Later) => Promise<LateApp>} LateAppFactory
 */

const FILE = fileURLToPath(import.meta.url)
const noop = () => {}
/** @param {Later} later */
const seen = (later) => ({
  later,
  ran: /** @type {string[]} */ ([]),
  errors: /** @type {unknown[]} */ ([]),
  sources: /** @type {Set<Readable>} */ (new Set()),
  called: /** @type {string[]} */ ([]),
  read: /** @type {number[]} */ ([]),
})

/** A stream of a few small chunks, or of chunks for ever. @param {Set<Readable>} open @param {boolean} [isEndless] */
function source(open, isEndless = false) {
  let left = 10
  const stream = new Readable({
    read() {
      setTimeout(() => this.push(isEndless || left-- > 0 ? 'x'.repeat(50) : null), 1)
    },
  })
  open.add(stream)
  stream.on('close', () => open.delete(stream)).on('error', noop)
  return stream
}

/** Uses every method of a response by hand. @param {Response} res @param {string[]} called */
function respondByHand(res, called) {
  res.statusCode = 201
  res.setHeader('X-Late', '1')
  res.appendHeader('X-Late', '2')
  res.removeHeader('X-Late')
  res.writeHead(200, { 'Content-Type': 'text/plain' })
  res.flushHeaders()
  res.write('first', () => called.push('write'))
  res.addTrailers({ 'x-sum': '1' })
  res.end('last', () => called.push('end'))
}

/** @param {import('node:http').IncomingMessage} raw */
async function bytesOf(raw, /** @type {number[]} */ read) {
  let bytes = 0
  for await (const chunk of raw) bytes += chunk.length
  read.push(bytes)
  return bytes
}

/**
 * Handlers that need no framework, by path. All return at once.
 * @type {Record<string, (raw: import('node:http').IncomingMessage, res: Response, app: ReturnType<typeof seen>) => void>}
 */
const BY_HAND = {
  '/raw': (_raw, res, { later, called }) => void later().then(() => respondByHand(res, called)),
  '/pipe': (_raw, res, { later, sources }) => void later().then(() => source(sources).pipe(res)),
  '/piping': (_raw, res, { sources }) => {
    const stream = source(sources)
    stream.pipe(res)
    // `pipe` does not close a stream whose response is cut off.
    res.on('close', () => stream.destroy())
  },
  '/pipeline': (_raw, res, { later, sources }) => void later().then(() => pipeline(source(sources), res, noop)),
  '/transform': (_raw, res, { later, sources }) => {
    later().then(() => source(sources).pipe(new PassThrough()).pipe(res))
  },
  '/endless': (_raw, res, { later, sources }) => void later().then(() => source(sources, true).pipe(res)),
  '/echo': (raw, res) => void raw.pipe(res),
  '/flush': (_raw, res, { later }) => {
    res.flushHeaders()
    later().then(() => res.end('flushed'))
  },
  '/flushed': (_raw, res) => void res.end('flushed'),
  '/after-end': (_raw, res, { later }) => {
    res.end('x'.repeat(500))
    later().then(() => {
      res.write('late')
      res.end('late')
    })
  },
}

/** Middleware that begins to respond before limiters run. @param {string | undefined} path @param {Response} res */
function flushEarly(path, res) {
  if (path !== '/flushed') return
  res.statusCode = 200
  res.flushHeaders()
}

/** HTTP/2 hands on nothing of an unread body. @param {import('node:http').IncomingMessage} raw */
function readOverHttp2(raw) {
  if (raw.httpVersionMajor === 2 && [...LATE_PATHS, '/flush'].includes(raw.url ?? '')) raw.resume()
}

/** @type {(make: () => import('express').Express) => LateAppFactory} */
const expressApp = (make) => async (options, later) => {
  const app = make()
  const own = seen(later)
  const limiters = options.map((each) => expressAdapter.rateLimit(/** @type {never} */ (each)))
  app.set('env', 'test')
  app.use((req, res, next) => {
    flushEarly(req.path, res)
    next()
  })
  for (const limiter of limiters) app.use(limiter)
  app.use((req, _res, next) => {
    own.ran.push(req.path)
    next()
  })
  for (const [path, handler] of Object.entries(BY_HAND)) app.all(path, (req, res) => handler(req, res, own))
  app.all('/read', makeExpress.text({ type: () => true, limit: '1mb' }), (_req, res) => void res.send('read'))
  app.all('/iterate', (req, res, next) => {
    bytesOf(req, own.read).then((bytes) => res.json({ bytes }), next)
  })
  app.all('/callback', (_req, res) => {
    later().then(() => res.status(201).set('X-Late', '1').cookie('late', '1').json({ ok: true }))
  })
  app.all('/promise', (_req, res, next) => {
    later().then(() => res.redirect('/'), next)
  })
  app.all('/stream', (_req, res) => void later().then(() => res.sendFile(FILE)))
  app.all('/fail', (_req, _res, next) => void later().then(() => next(new Error('late'))))
  app.use((_req, res) => void res.send('done'))
  app.use((/** @type {unknown} */ error, /** @type {any} */ _req, /** @type {any} */ res, /** @type {any} */ next) => {
    own.errors.push(error)
    if (res.headersSent) next(error)
    else res.status(500).send('error')
  })
  return { ...own, server: createServer(app), limiters: limiters.map(({ limiter }) => /** @type {any} */ (limiter)) }
}

/** @type {(serve: (handle: any) => import('node:net').Server) => LateAppFactory} */
const koaApp = (serve) => async (options, later) => {
  const app = new Koa()
  const own = seen(later)
  app.on('error', (error) => own.errors.push(error))
  const limiters = options.map((each) => koaAdapter.rateLimit(/** @type {never} */ (each)))
  app.use((ctx, next) => {
    flushEarly(ctx.path, ctx.res)
    return next()
  })
  for (const limiter of limiters) app.use(limiter)
  app.use(async (ctx) => {
    own.ran.push(ctx.path)
    readOverHttp2(ctx.req)
    const byHand = BY_HAND[ctx.path]
    if (byHand) {
      ctx.respond = false
      ctx.res.statusCode = 200
      byHand(ctx.req, ctx.res, own)
      return
    }
    if (ctx.path === '/read' || ctx.path === '/iterate') ctx.body = { bytes: await bytesOf(ctx.req, own.read) }
    else if (ctx.path === '/') ctx.body = 'done'
    else await later()
    if (ctx.path === '/callback') {
      ctx.status = 201
      ctx.set('X-Late', '1')
      ctx.cookies.set('late', '1')
      ctx.body = { ok: true }
    }
    if (ctx.path === '/promise') ctx.redirect('/')
    if (ctx.path === '/stream') ctx.body = source(own.sources)
    if (ctx.path === '/fail') throw new Error('late')
  })
  const server = serve(app.callback())
  return { ...own, server, limiters: limiters.map(({ limiter }) => /** @type {any} */ (limiter)) }
}

/** @type {(http2: boolean) => LateAppFactory} */
const fastifyApp = (http2) => async (options, later) => {
  const app = /** @type {import('fastify').FastifyInstance} */ (
    /** @type {unknown} */ (http2 ? makeFastify({ http2: true }) : makeFastify())
  )
  const own = seen(later)
  app.setErrorHandler((error, _request, reply) => {
    own.errors.push(error)
    reply.code(500).send('error')
  })
  await app.register(fastifyAdapter.rateLimit, { global: false })
  const hooks = options.map((each) => app.rateLimit(/** @type {never} */ (each)))
  app.addHook('onRequest', async (request, reply) => flushEarly(request.url, reply.raw))
  for (const hook of hooks) app.addHook('onRequest', hook)
  app.addHook('preHandler', async (request) => {
    own.ran.push(request.url)
    readOverHttp2(request.raw)
  })
  // Handlers run while the body is on its way.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
  for (const [path, handler] of Object.entries(BY_HAND)) {
    app.all(path, (request, reply) => {
      reply.hijack()
      handler(request.raw, reply.raw, own)
    })
  }
  app.all('/', async () => 'done')
  app.all('/iterate', async (request) => ({ bytes: await bytesOf(request.raw, own.read) }))
  app.all('/callback', (_request, reply) => {
    later().then(() => reply.code(201).header('X-Late', '1').send({ ok: true }))
  })
  app.all('/promise', async (_request, reply) => {
    await later()
    return reply.redirect('/')
  })
  app.all('/stream', async (_request, reply) => {
    await later()
    return reply.send(source(own.sources))
  })
  app.all('/fail', async () => {
    await later()
    throw new Error('late')
  })
  await app.register(async (scoped) => {
    scoped.removeAllContentTypeParsers()
    scoped.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    scoped.all('/read', async () => 'read')
  })
  await app.ready()
  return { ...own, server: app.server, limiters: hooks.map(({ limiter }) => /** @type {any} */ (limiter)) }
}

/** @type {Readonly<Record<string, LateAppFactory>>} */
export const LATE_APPS = {
  'Express 5': expressApp(makeExpress),
  'Express 4': expressApp(makeExpress4),
  Koa: koaApp(createServer),
  'Koa over HTTP/2': koaApp(createHttp2Server),
  Fastify: fastifyApp(false),
  'Fastify over HTTP/2': fastifyApp(true),
}

/** Paths of handlers that send nothing before `later`. */
export const LATE_PATHS = [
  '/raw',
  '/pipe',
  '/pipeline',
  '/transform',
  '/endless',
  '/callback',
  '/promise',
  '/stream',
  '/fail',
]
/** Paths of handlers that read the body, or respond at once. */
export const OTHER_PATHS = ['/read', '/iterate', '/echo', '/piping', '/flush', '/']
