import 'reflect-metadata'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type ArgumentsHost,
  Controller,
  type DynamicModule,
  Get,
  Header,
  type INestApplication,
  Logger,
  Module,
  type ModuleMetadata,
  Req,
  type Type,
  UseGuards,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { Verdict } from '@sluice/core'
import { type RateLimitGuard, rateLimitGuard, SluiceGuard, SluiceLimiters, SluiceModule } from '@sluice/nestjs'
import type { AppFactory } from './app.js'

export const PLATFORMS = ['express', 'fastify'] as const
export type Platform = (typeof PLATFORMS)[number]

/** Applies decorators as TypeScript does: the one that is written first is applied last. */
function decorate(target: object, key: string, ...decorators: unknown[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, key) as PropertyDescriptor
  for (const decorator of decorators.toReversed()) (decorator as MethodDecorator)(target, key, descriptor)
}

function decorateClass(target: Type, ...decorators: unknown[]): void {
  for (const decorator of decorators.toReversed()) (decorator as ClassDecorator)(target)
}

type Method = (this: never, ...args: never[]) => unknown

/** A class whose methods are handlers, each with its decorators. The first parameter of a method is the request. */
export function classOf(
  name: string,
  handlers: Readonly<Record<string, readonly [handler: Method, ...decorators: unknown[]]>>,
  ...ofClass: unknown[]
): Type {
  const made = { [name]: class {} }[name] as Type
  for (const [key, [value, ...decorators]] of Object.entries(handlers)) {
    Object.defineProperty(made.prototype, key, { value, configurable: true, writable: true })
    decorate(made.prototype, key, ...decorators)
  }
  decorateClass(made, ...ofClass)
  return made
}

/** A handler of `GET path` that responds with the units left. */
export function get(path: string, ...decorators: unknown[]): readonly [Method, ...unknown[]] {
  const handler = (request: { rateLimit?: Verdict }) => `left: ${request.rateLimit?.remaining}`
  return [handler, Get(path), withRequest, ...decorators]
}

/** Makes the request the first argument of a handler. */
const withRequest: MethodDecorator = (target, key) => Req()(target, key, 0)

/** A module with the guard for the whole app. */
export function guarded(metadata: ModuleMetadata & { readonly limits: DynamicModule }): Type {
  const { limits, imports = [], providers = [], ...rest } = metadata
  class App {}
  Module({
    imports: [limits, ...imports],
    providers: [{ provide: APP_GUARD, useClass: SluiceGuard }, ...providers],
    ...rest,
  })(App)
  return App
}

/** An app that is not initialised. `trustProxy` trusts the loopback interface. */
export async function createNest(
  platform: Platform,
  module: Type,
  { trustProxy = false } = {},
): Promise<INestApplication> {
  const trusted = trustProxy && 'loopback'
  const options = { logger: false, abortOnError: false } as const
  if (platform === 'fastify') return NestFactory.create(module, new FastifyAdapter({ trustProxy: trusted }), options)
  const app = await NestFactory.create(module, options)
  app.getHttpAdapter().getInstance().set('trust proxy', trusted)
  return app
}

/** The errors in Nest's log while something ran. */
export async function loggedDuring<Result>(run: () => Promise<Result>): Promise<{ result: Result; logged: string[] }> {
  const logged: string[] = []
  const note = (error: unknown) => void logged.push(String(error))
  Logger.overrideLogger({ log() {}, warn() {}, error: note })
  const result = await run().finally(() => Logger.overrideLogger(false))
  return { result, logged }
}

export interface RunningNest {
  readonly app: INestApplication
  readonly url: string
}

/** Starts an app on a free port of this machine. `setUp` runs before it is initialised. */
export async function startNest(
  platform: Platform,
  module: Type,
  setUp: (app: INestApplication) => void = () => {},
): Promise<RunningNest> {
  const app = await createNest(platform, module)
  setUp(app)
  await app.listen(0, '127.0.0.1')
  // On a busy machine, a client may send on a connection while its server closes it as idle.
  app.getHttpServer().keepAliveTimeout = 600_000
  return { app, url: `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}` }
}

/** Notes errors, and responds to them with 500, the text `error` and their code. Leaves paths without a route to Nest. */
function catching(errors: unknown[], app: INestApplication) {
  return {
    catch(error: { code?: string; getStatus?: () => number }, host: ArgumentsHost) {
      const adapter = app.getHttpAdapter()
      const response = host.getArgByIndex(1)
      const status = error.getStatus?.()
      if (status === undefined) errors.push(error)
      adapter.setHeader(response, 'Content-Type', 'text/plain; charset=utf-8')
      adapter.reply(response, `error ${error.code}`, status ?? 500)
    },
  }
}

/** The app of the adapter contract: limiters of the app by the module, others as guards of their own. */
export const nestApp =
  (platform: Platform): AppFactory =>
  async ({ global = [], routes = {}, presetHeaders = {}, trustProxy = false }) => {
    const ran: string[] = []
    const errors: unknown[] = []
    const verdicts: unknown[] = []
    const [ofApp = {}, ...more] = global
    if (more.length > 0) throw new Error('expected one limiter for the whole app')
    const guards: RateLimitGuard[] = []
    const handlers = Object.entries(routes).map(([path, { limiters = [], handler = () => 'done' }], i) => {
      const own = limiters.map((options) => rateLimitGuard(options as never))
      guards.push(...own)
      const handle = (request: { rateLimit?: unknown }) => {
        ran.push(path)
        verdicts.push(request.rateLimit)
        return handler()
      }
      const decorators = [
        Get(path),
        withRequest,
        Header('Content-Type', 'text/plain; charset=utf-8'),
        UseGuards(...own),
      ]
      return [`route${i}`, [handle, ...decorators]] as const
    })
    const Routes = classOf('Routes', Object.fromEntries(handlers), Controller())
    const module = guarded({ limits: SluiceModule.forRoot(ofApp), controllers: [Routes] })
    const app = await createNest(platform, module, { trustProxy })
    app.useGlobalFilters(catching(errors, app) as never)
    app.use((_req: unknown, res: { setHeader(name: string, value: string): void }, next: () => void) => {
      for (const [name, value] of Object.entries(presetHeaders)) res.setHeader(name, value)
      next()
    })
    await app.init()
    if (platform === 'fastify') await app.getHttpAdapter().getInstance().ready()
    const { module: first } = app.get(SluiceLimiters)
    const limiters = [...(first ? [first] : []), ...guards.map(({ limiter }) => limiter)] as never[]
    return { server: app.getHttpServer() as Server, ran, errors, verdicts, limiters }
  }
