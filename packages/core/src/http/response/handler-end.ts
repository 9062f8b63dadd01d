import type { ServerResponse } from 'node:http'
import { finished, type Readable } from 'node:stream'
import type { RawResponse } from '../../request/context.js'
import { getOrInsert } from '../../util/get-or-insert.js'

/** The methods with which a handler responds, over HTTP/1 and HTTP/2. */
const ANSWERING = ['writeHead', 'flushHeaders', 'write', 'end'] as const

const ends = new WeakMap<RawResponse, Promise<void>>()

/**
 * Watches the handler of a response whose client left before it began, or that was sent in the handler's place. Resolves when the
 * handler responds all the same, or when a stream that it pipes into the response has ended or closed. Never resolves if the
 * handler does neither.
 *
 * Replaces methods of this one response. Never call it for a response that a client still waits for.
 */
export function handlerEnd(response: RawResponse): Promise<void> {
  return getOrInsert(ends, response, () => watch(response as unknown as ServerResponse))
}

function watch(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ANSWERING) {
      const method = response[name] as (...args: unknown[]) => unknown
      Object.defineProperty(response, name, {
        configurable: true,
        writable: true,
        value: (...args: unknown[]) => {
          resolve()
          return method.apply(response, args)
        },
      })
    }
    const awaitSource = (source: Readable) => streamEnd(source).then(resolve)
    response.on('pipe', awaitSource)
    // A response that closes unpipes earlier sources. A source may still wait for its first byte.
    response.on('unpipe', awaitSource)
  })
}

/** Resolves when a stream has ended, failed or closed. */
export function streamEnd(source: Readable): Promise<void> {
  return new Promise((resolve) => {
    finished(source, { writable: false }, () => resolve())
  })
}
