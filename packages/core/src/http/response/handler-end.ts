import type { ServerResponse } from 'node:http'
import { finished, type Readable } from 'node:stream'
import type { RawResponse } from '../../request/context.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { upgradeOf } from './upgrade.js'

/** The methods with which a handler responds, over HTTP/1 and HTTP/2. */
const ANSWERING = ['writeHead', 'flushHeaders', 'write', 'end'] as const

const watches = new WeakMap<RawResponse, HandlerWatch>()

/** Watches the handler of a response. The first call comes before the handler runs, where a permit is held. */
export function watchHandler(response: RawResponse): HandlerWatch {
  return getOrInsert(watches, response, () => new HandlerWatch(response as unknown as ServerResponse))
}

/** Knows when a handler is done, though its client has left or another response was sent in its place. */
class HandlerWatch {
  readonly #response: ServerResponse
  #hasEnded = false
  #done: Promise<void> | undefined
  #whenDone = (): void => {
    this.#hasEnded = true
  }

  constructor(response: ServerResponse) {
    this.#response = response
    // A handler reads `end` long before it calls it in `res.end(await work())`.
    this.#watch('end')
  }

  /** Another response was sent in the handler's place, by the same methods. The handler has yet to end its own. */
  wasReplaced(): void {
    this.#hasEnded = false
    void this.done()
  }

  /**
   * Resolves when the handler has ended its response, begins it after this call, or when a stream that it pipes into it has ended
   * or closed. Never resolves if the handler does none of these.
   *
   * Replaces methods of this one response. Never call it for a response that a client still waits for.
   */
  done(): Promise<void> {
    this.#done ??= new Promise((resolve) => {
      if (this.#hasEnded) resolve()
      this.#whenDone = resolve
      upgradeOf(this.#response as never)?.whenAnswered(resolve)
      for (const name of ANSWERING) this.#watch(name)
      const awaitSource = (source: Readable) => streamEnd(source).then(resolve)
      this.#response.on('pipe', awaitSource)
      // A response that closes unpipes earlier sources. A source may still wait for its first byte.
      this.#response.on('unpipe', awaitSource)
    })
    return this.#done
  }

  #watch(name: (typeof ANSWERING)[number]): void {
    const response = this.#response
    const method = response[name] as (...args: unknown[]) => unknown
    response[name] = (...args: unknown[]): never => {
      this.#whenDone()
      return method.apply(response, args) as never
    }
  }
}

/** Resolves when a stream has ended, failed or closed. */
export function streamEnd(source: Readable): Promise<void> {
  return new Promise((resolve) => {
    finished(source, { writable: false }, () => resolve())
  })
}
