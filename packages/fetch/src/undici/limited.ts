import { SluiceError } from '@sluice/core'
import { onBodyError } from '../bodies.js'
import { type MeteredOutboundTurn, meteredTurns } from '../create-turns.js'
import type { OutboundOptions, OutboundRequest } from '../options.js'
import { rawPairs } from '../quota/headers.js'
import { textOf } from '../usage/text-of.js'
import type { Dispatch, DispatchHeaders, DispatchOptions, Handler } from './dispatcher.js'
import { handlerFor, isOfController } from './handlers.js'
import { WaitingController } from './waiting-controller.js'

/** The origin of requests that name none, as those of a `Client` or a `Pool`, of which an interceptor learns nothing. */
const UNNAMED_ORIGIN = 'http://undici.invalid'

/** An interceptor of undici 6, 7 and 8, for `compose`. */
export type LimitedInterceptor = <Method extends (options: never, handler: never) => boolean>(
  dispatch: Method,
) => Method

/**
 * An interceptor for dispatchers of undici, whose requests wait for their turn, so that the service refuses none.
 *
 * Requests of a `Client` or a `Pool` that name no origin count as those of `http://undici.invalid`. Make one interceptor for each.
 *
 * It waits and learns as `limitedFetch` does. A refused response is passed on: compose undici's `interceptors.retry()` after it to
 * send requests again. For the `fetch` that Node has built in, use `limitedFetch`: it rejects dispatchers of some versions of undici.
 *
 * @throws SluiceError `INVALID_POLICY`. Requests fail with `WAIT_EXCEEDED` if a wait would exceed `maxWait`, and with
 * `CIRCUIT_OPEN` while the service fails
 * @example const agent = new Agent().compose(limited({ limits: [perSecond(10)] }))
 */
export function limited(options: OutboundOptions = {}): LimitedInterceptor {
  const turns = meteredTurns(options)
  const interceptor = (dispatch: Dispatch): Dispatch =>
    // undici asks for a function of two parameters.
    function limitedDispatch(request, handler) {
      const controller = new WaitingController()
      begin(handler, controller)
      void send(dispatch, request, handler, controller, turns)
      return true
    }
  return interceptor as unknown as LimitedInterceptor
}

/** Lets the given handler abort while its request waits. */
function begin(handler: Handler, controller: WaitingController): void {
  if (isOfController(handler)) handler.onRequestStart?.(controller)
  else handler.onConnect?.((reason) => controller.abort(reason))
}

async function send(
  dispatch: Dispatch,
  request: DispatchOptions,
  handler: Handler,
  controller: WaitingController,
  turns: ReturnType<typeof meteredTurns>,
): Promise<void> {
  const ignoreBody = onBodyError(request.body, (error) => controller.abort(error))
  let turn: MeteredOutboundTurn | undefined
  try {
    turn = await turns.take(requestOf(request), controller.signal)
    controller.signal.throwIfAborted()
    dispatch(request, handlerFor(handler, controller, turn))
  } catch (error) {
    turn?.failed()
    fail(handler, controller, understood(error as Error))
  } finally {
    ignoreBody()
  }
}

function fail(handler: Handler, controller: WaitingController, error: Error): void {
  if (isOfController(handler)) handler.onResponseError?.(controller, error)
  else handler.onError?.(error)
}

/** Says what to do where a fetch and a dispatcher are of versions of undici whose handlers have different forms. */
function understood(error: Error): Error {
  if (!/^invalid on\w+ method$/.test(error.message)) return error
  const message =
    "limited: the dispatcher is of another version of undici than the fetch that uses it: use that undici's own fetch, or limitedFetch"
  return new SluiceError('INVALID_POLICY', message, { cause: error })
}

function requestOf({ origin, path, method, headers, body }: DispatchOptions): OutboundRequest {
  let read: Headers | undefined
  return {
    url: urlOf(origin, path),
    method: method.toUpperCase(),
    get body() {
      return textOf(body)
    },
    // Most requests are counted by their origin alone.
    get headers() {
      read ??= headersOf(headers)
      return read
    },
  }
}

/** A path stays a path of its origin: it may begin with two slashes, or be a whole URL where the origin is a proxy. */
function urlOf(origin: DispatchOptions['origin'], path: string): URL {
  const url = new URL(origin || UNNAMED_ORIGIN)
  return new URL(`${url.origin}${String(path).startsWith('/') ? '' : '/'}${path}`)
}

function headersOf(given: DispatchHeaders): Headers {
  const headers = new Headers()
  const add = (name: unknown, value: unknown) => {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) headers.append(String(name), String(one))
    }
  }
  if (given) {
    const entries = Array.isArray(given) ? rawPairs(given) : Symbol.iterator in given ? given : Object.entries(given)
    for (const [name, value] of entries as Iterable<[unknown, unknown]>) add(name, value)
  }
  return headers
}
