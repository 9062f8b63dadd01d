import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Limiter, RateLimitOptions } from '@sluice/core'

/** Options of a limiter whose functions use only the context, so that every framework can run them. */
// biome-ignore lint/suspicious/noExplicitAny: each framework hands its own request to the functions
export type AdapterLimiterOptions = RateLimitOptions<any>

export interface AdapterRouteSpec {
  /** Run in this order, before the handler. */
  readonly limiters?: readonly AdapterLimiterOptions[]
  /** Resolves to the text of the response. Default: `done` */
  readonly handler?: () => string | Promise<string>
}

/** The app that a test needs. */
export interface AdapterAppSpec {
  /** Limiters before all routes, for unknown paths too. */
  readonly global?: readonly AdapterLimiterOptions[]
  /** By path, such as `/account`. They respond to GET and HEAD; other paths get 404. */
  readonly routes?: Readonly<Record<string, AdapterRouteSpec>>
  /** Response headers that the app has set before any limiter runs. */
  readonly presetHeaders?: Readonly<Record<string, string>>
  /** Whether the sender of `X-Forwarded-For` is trusted. */
  readonly trustProxy?: boolean
}

/** An app, and its observed events. */
export interface AdapterApp {
  /** Not listening yet. */
  readonly server: Server
  /** Paths whose handler has run. */
  readonly ran: string[]
  /**
   * Errors that have reached the error handler of the framework. It responds with 500, the text `error` and the error's `code`.
   */
  readonly errors: unknown[]
  /** Verdicts that handlers have found on their request; `undefined` where there was none. */
  readonly verdicts: unknown[]
  /** The limiters: the global ones, then those of the routes, in the order of the spec. */
  readonly limiters: readonly Limiter<never>[]
}

/** Builds one app with the framework and its adapter. */
export type AdapterAppFactory = (spec: AdapterAppSpec) => Promise<AdapterApp>

export interface RunningApp extends AdapterApp {
  readonly url: string
  close(): Promise<void>
}

/** Starts an app on a free port of this machine. */
export async function startApp(factory: AdapterAppFactory, spec: AdapterAppSpec): Promise<RunningApp> {
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

/** The first limiter of an app, as one for keys in text. */
export function limiterOf(app: AdapterApp): Limiter<string> {
  return app.limiters[0] as unknown as Limiter<string>
}
