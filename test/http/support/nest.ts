import 'reflect-metadata'
import type { Server } from 'node:http'
import {
  type ArgumentsHost,
  Controller,
  type DynamicModule,
  Get,
  Header,
  type INestApplication,
  Module,
  type ModuleMetadata,
  Req,
  type Type,
  UseGuards,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { rateLimitGuard, SluiceGuard, SluiceLimiters, SluiceModule } from '@sluice/nestjs'
import type { AppFactory } from './app.js'

export const PLATFORMS = ['express', 'fastify'] as const
export type Platform = (typeof PLATFORMS)[number]

type Decorator = ClassDecorator & MethodDecorator & ParameterDecorator

/** Applies decorators as TypeScript does: the one that is written first is applied last. */
export function decorate(target: object, key: string, ...decorators: unknown[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, key) as PropertyDescriptor
  for (const decorator of decorators.toReversed()) (decorator as Decorator)(target, key, descriptor)
}

/** Applies a decorator to a parameter of a method. */
export function decorateParameter(target: object, key: string, index: number, decorator: unknown): void {
  ;(decorator as ParameterDecorator)(target, key, index)
}

export function decorateClass(target: Type, ...decorators: unknown[]): void {
  for (const decorator of decorators.toReversed()) (decorator as ClassDecorator)(target)
}

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
export async function createNest(platform: Platform, module: Type, trustProxy = false): Promise<INestApplication> {
  const options = { logger: false, abortOnError: false } as const
  if (platform === 'fastify') {
    return NestFactory.create(module, new FastifyAdapter({ trustProxy: trustProxy && 'loopback' }), options)
  }
  const app = await NestFactory.create(module, options)
  app.getHttpAdapter().getInstance().set('trust proxy', trustProxy && 'loopback')
  return app
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
    class Routes {
      [handler: string]: unknown
    }
    const guards = Object.entries(routes).flatMap(([path, { limiters = [], handler = () => 'done' }], i) => {
      const own = limiters.map((options) => rateLimitGuard(options as never))
      const key = `route${i}`
      Object.defineProperty(Routes.prototype, key, {
        configurable: true,
        writable: true,
        value: async (request: { rateLimit?: unknown }) => {
          ran.push(path)
          verdicts.push(request.rateLimit)
          return handler()
        },
      })
      decorateParameter(Routes.prototype, key, 0, Req())
      decorate(Routes.prototype, key, Get(path), Header('Content-Type', 'text/plain; charset=utf-8'), UseGuards(...own))
      return own
    })
    decorateClass(Routes, Controller())
    const module = guarded({ limits: SluiceModule.forRoot(ofApp), controllers: [Routes] })
    const app = await createNest(platform, module, trustProxy)
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
