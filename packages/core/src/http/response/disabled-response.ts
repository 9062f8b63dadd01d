import type { ServerResponse } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import type { RawResponse } from '../../request/context.js'

const disabled = new WeakSet<RawResponse>()

/**
 * Makes the methods of a response do nothing, for a handler that still runs although the limiter has sent the response. They
 * neither throw nor emit `error`, and they call their callbacks. Streams that are piped into the response are released. Only
 * this response is patched, so that others pay nothing.
 */
export function disableResponse(response: ServerResponse): void {
  disabled.add(response)
  for (const [name, method] of Object.entries(DISABLED_METHODS)) {
    if (name in response) Object.defineProperty(response, name, { value: method, configurable: true, writable: true })
  }
  // Middleware that has wrapped the response may write after its end.
  response.on('error', ignore)
  response.on('pipe', (source: Readable) => source.unpipe(response))
  response.on('unpipe', (source: Readable) => process.nextTick(releaseSource, source, response))
}

/** Whether the limiter has sent the response in place of the handler. */
export function isDisabled(response: RawResponse): boolean {
  return disabled.has(response) && response.headersSent === true
}

/** Without a reader, a stream would stay open for ever. */
function releaseSource(source: Readable & Partial<Writable>, response: ServerResponse): void {
  const isRead = source.listenerCount('data') > 0 || source.listenerCount('readable') > 0
  if (isRead || (source as unknown) === response.req) return
  // A transform is drained, so that streams piped into it end.
  if (typeof source.write === 'function') source.resume()
  else source.destroy?.()
}

type Method = (this: ServerResponse, ...args: unknown[]) => unknown

const DISABLED_METHODS: Readonly<Record<string, Method>> = {
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
