import { createServer, type Server } from 'node:http'
import makeExpress from 'express'
import makeExpress4 from 'express4'
import makeFastify from 'fastify'
import Koa from 'koa'
import { appsByEffort } from '../support/by-effort.js'
import type * as Fixtures from './fixtures/controllers.js'

export interface ControllerApp {
  readonly server: Server
  /** The errors that reached the framework's error handler, which responds with 500. */
  readonly errors: unknown[]
  /** The controller class, and the instance that serves. */
  readonly Users: { prototype: { list: unknown } }
  readonly users: { list: unknown }
}

/**
 * An app with a controller: `/list`, `/search/ANN`, `/rejects`, `/throws` and, in Express, `/next` go to an instance;
 * `/health` to a static method, `/status` to one without its `this`.
 */
export type ControllerFactory = (fixtures: typeof Fixtures, setup: Fixtures.Setup) => Promise<ControllerApp>

const onExpress =
  (make: typeof makeExpress): ControllerFactory =>
  async ({ expressUsers, search }, setup) => {
    const errors: unknown[] = []
    const Users = expressUsers(setup)
    const users = new Users('hello')
    const app = make()
    app.get('/list', users.list.bind(users))
    app.get('/search/:id', users[search].bind(users))
    app.get('/rejects', users.rejects.bind(users))
    app.get('/throws', users.throws.bind(users))
    app.get('/next', users.rejectsAfterNext.bind(users))
    app.get('/health', Users.health.bind(Users))
    app.get('/status', Users.status)
    app.use((error: unknown, _req: unknown, res: makeExpress.Response, _next: unknown) => {
      errors.push(error)
      res.status(500).send('error')
    })
    return { server: createServer(app), errors, Users, users }
  }

const onKoa: ControllerFactory = async ({ koaUsers, search }, setup) => {
  const errors: unknown[] = []
  const Users = koaUsers(setup)
  const users = new Users('hello')
  const app = new Koa()
  app.use(async (ctx, next) => {
    await next().catch((error) => {
      errors.push(error)
      ctx.status = 500
    })
  })
  app.use((ctx, next) => {
    const [, path = '', id] = ctx.path.split('/')
    ctx.state.id = id
    if (path === 'search') return users[search](ctx as never)
    if (path === 'health') return Users.health(ctx)
    if (path === 'status') return Users.status.call(undefined as never, ctx)
    return users[path as 'list'](ctx, next)
  })
  return { server: createServer(app.callback()), errors, Users, users }
}

const onFastify: ControllerFactory = async ({ fastifyUsers, search }, setup) => {
  const errors: unknown[] = []
  const Users = fastifyUsers(setup)
  const users = new Users('hello')
  const app = makeFastify()
  app.setErrorHandler((error, _request, reply) => {
    errors.push(error)
    reply.code(500).send('error')
  })
  app.get('/list', users.list.bind(users))
  app.get('/search/:id', users[search].bind(users))
  app.get('/rejects', users.rejects.bind(users))
  app.get('/throws', users.throws.bind(users))
  app.get('/health', Users.health.bind(Users))
  app.get('/status', Users.status.bind(undefined as never))
  await app.ready()
  return { server: app.server, errors, Users, users }
}

export const CONTROLLERS: Readonly<Record<string, ControllerFactory>> = appsByEffort({
  'Express 5': onExpress(makeExpress),
  'Express 4': onExpress(makeExpress4 as typeof makeExpress),
  Koa: onKoa,
  Fastify: onFastify,
})
