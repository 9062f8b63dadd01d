import type { ServerResponse } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import type { RawResponse } from '../../request/context.js'

const silent = new WeakSet<RawResponse>()

/**
 * Makes the methods of a response do nothing, for a handler that goes on although the limiter has answered in its
 * stead: they neither throw nor emit `error`, they call their callbacks, and what is piped into the response is
 * released. Patches this one response, so that others pay nothing.
 */
export function silence(response: ServerResponse): void {
  silent.add(response)
  for (const [name, method] of Object.entries(QUIET)) {
    if (name in response) Object.defineProperty(response, name, { value: method, configurable: true, writable: true })
  }
  // What has wrapped the response before may write later than its end.
  response.on('error', ignore)
  response.on('pipe', (source: Readable) => source.unpipe(response))
  response.on('unpipe', (source: Readable) => process.nextTick(release, source, response))
}

/** Whether the limiter has answered in a handler's stead. */
export function isSilent(response: RawResponse): boolean {
  return response.headersSent === true && silent.has(response)
}

/** Keeps a stream whose reader has gone from staying open for ever. */
function release(source: Readable & Partial<Writable>, response: ServerResponse): void {
  const isRead = source.listenerCount('data') > 0 || source.listenerCount('readable') > 0
  if (isRead || (source as unknown) === response.req) return
  // A transform is drained, so that what is piped into it comes to its end.
  if (typeof source.write === 'function') source.resume()
  else source.destroy?.()
}

type Method = (this: ServerResponse, ...args: unknown[]) => unknown

const QUIET: Readonly<Record<string, Method>> = {
  ...same(['setHeader', 'setHeaders', 'appendHeader', 'writeHead', 'writeHeader', 'setTimeout'], returnThis),
  ...same(['removeHeader', 'flushHeaders', 'addTrailers', 'setTrailer', '_implicitHeader'], ignore),
  ...same(['writeContinue', 'writeProcessing'], ignore),
  end: callingBack(returnThis),
  write: callingBack(() => true),
  writeEarlyHints: callingBack(ignore),
  createPushResponse: (_headers, callback) => {
    if (typeof callback === 'function') process.nextTick(callback, new Error('the response has been sent'))
  },
}

function same(names: readonly string[], method: Method): Record<string, Method> {
  return Object.fromEntries(names.map((name) => [name, method]))
}

function callingBack(method: Method): Method {
  return function (...args) {
    const callback = args.find((arg) => typeof arg === 'function')
    if (callback) process.nextTick(callback as () => void)
    return method.call(this)
  }
}

function returnThis(this: ServerResponse): ServerResponse {
  return this
}

function ignore(): void {}
