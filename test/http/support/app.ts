import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Limiter, RateLimitOptions } from '@sluice/core'

/** Options whose functions look at the context alone, so that every framework can run them. */
// biome-ignore lint/suspicious/noExplicitAny: each framework hands its own request to the functions
export type AnyOptions = RateLimitOptions<any>

export interface RouteSpec {
  readonly limiters?: readonly AnyOptions[]
  /** Resolves to the text of the response. */
  readonly handler?: () => string | Promise<string>
}

export interface AppSpec {
  readonly global?: readonly AnyOptions[]
  readonly routes?: Readonly<Record<string, RouteSpec>>
  /** Response headers that the app has set before any limiter runs. */
  readonly presetHeaders?: Readonly<Record<string, string>>
  readonly trustProxy?: boolean
}

/** What a test sees of an app from inside. */
export interface Seen {
  /** Paths whose handler ran. */
  readonly ran: string[]
  /** What reached the framework's error handler, which answers 500 with the error's code. */
  readonly errors: unknown[]
  /** Verdicts that handlers found on their request. */
  readonly verdicts: unknown[]
}

export interface BuiltApp extends Seen {
  readonly server: Server
  /** Of the global limiters, then of the routes', in the order of the spec; those a framework shows. */
  readonly limiters: Limiter<never>[]
}

/** Builds one app with one framework. Routes answer GET and HEAD with `handler`'s text, else with `done`. */
export type AppFactory = (spec: AppSpec) => Promise<BuiltApp>

export interface RunningApp extends BuiltApp {
  readonly url: string
  close(): Promise<void>
}

export async function run(factory: AppFactory, spec: AppSpec): Promise<RunningApp> {
  const app = await factory(spec)
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve))
  const { port } = app.server.address() as AddressInfo
  return {
    ...app,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        app.server.close(() => resolve())
        app.server.closeAllConnections()
      }),
  }
}
