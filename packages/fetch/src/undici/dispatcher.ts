// The shapes of undici that this package knows: its interceptors get them, and import nothing of it.

/** Headers of undici: names and values in turns, an object, or anything with `forEach`-able entries. */
export type DispatchHeaders =
  | readonly string[]
  | Iterable<readonly [string, string | readonly string[] | undefined]>
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | null
  | undefined

export interface DispatchOptions {
  readonly origin?: string | URL | undefined
  readonly path: string
  readonly method: string
  readonly headers?: DispatchHeaders
  readonly body?: unknown
}

/** What controls a request, from undici 7 on. */
export interface Controller {
  readonly aborted: boolean
  readonly paused: boolean
  readonly reason: Error | null
  readonly rawHeaders?: unknown
  readonly rawTrailers?: unknown
  abort(reason: Error): void
  pause(): void
  resume(): void
}

type Callback = (...args: never[]) => unknown

/** What gets the events of a request: `onConnect` and others up to undici 6, `onRequestStart` and others from 7 on. */
export interface Handler {
  onConnect?(abort: (reason?: Error) => void, context?: unknown): void
  onError?(error: Error): void
  onRequestStart?(controller: Controller, context?: unknown): void
  onResponseError?(controller: Controller, error: Error): void
  readonly [name: string]: Callback | unknown
}

export type Dispatch = (options: DispatchOptions, handler: Handler) => boolean
