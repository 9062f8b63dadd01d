import { SluiceError } from '@sluice/core'
import type { OutboundOptions, OutboundRequest } from '../options.js'
import { readQuota } from '../quota/read-quota.js'
import type { Turn } from '../turns/turn.js'
import { type NextTurn, turnsOf } from '../turns/turns-of.js'
import type { Dispatch, DispatchHeaders, DispatchOptions, Handler } from './dispatcher.js'
import { type Answer, handlerFor, isOfController } from './handlers.js'
import { WaitingController } from './waiting-controller.js'

/** An interceptor of undici 6, 7 and 8, for `compose`. */
export type LimitedInterceptor = <Method extends (options: never, handler: never) => boolean>(
  dispatch: Method,
) => Method

/**
 * An interceptor for dispatchers of undici, whose requests wait for their turn, so that the service refuses none.
 *
 * It waits and learns as `limitedFetch` does. A refused response is passed on: compose undici's `interceptors.retry()` after it to
 * send requests again. For the `fetch` that Node has built in, use `limitedFetch`: it rejects dispatchers of some versions of undici.
 *
 * @throws SluiceError `INVALID_POLICY`. Requests fail with `WAIT_EXCEEDED` if a wait would exceed `maxWait`
 * @example const agent = new Agent().compose(limited({ limits: [perSecond(10)] }))
 */
export function limited(options: OutboundOptions = {}): LimitedInterceptor {
  const turnOf = turnsOf(options)
  const interceptor = (dispatch: Dispatch): Dispatch =>
    // undici asks for a function of two parameters.
    function limitedDispatch(request, handler) {
      const controller = new WaitingController()
      const next = turnOf(requestOf(request), controller.signal)
      begin(handler, controller)
      void send(dispatch, request, handler, controller, next)
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
  next: NextTurn,
): Promise<void> {
  let answer: Answer | undefined
  try {
    answer = answerOf(await next())
    dispatch(request, handlerFor(handler, controller, answer))
  } catch (error) {
    answer?.failed()
    fail(handler, controller, understood(error as Error))
  }
}

function fail(handler: Handler, controller: WaitingController, error: Error): void {
  if (isOfController(handler)) handler.onResponseError?.(controller, error)
  else handler.onError?.(error)
}

function answerOf(turn: Turn): Answer {
  let isAnswered = false
  const once = (...[quota, isRefusal]: Parameters<Turn['answered']>) => {
    if (!isAnswered) void turn.answered(quota, isRefusal)
    isAnswered = true
  }
  return {
    came(status, headers) {
      const quota = readQuota({ status, headers })
      once(quota, quota.isRefusal)
    },
    failed: () => once(undefined),
  }
}

/** Says what to do where a fetch and a dispatcher are of versions of undici whose handlers have different forms. */
function understood(error: Error): Error {
  if (!/^invalid on\w+ method$/.test(error.message)) return error
  const message =
    "limited: the dispatcher is of another version of undici than the fetch that uses it: use that undici's own fetch, or limitedFetch"
  return new SluiceError('INVALID_POLICY', message, { cause: error })
}

function requestOf({ origin = '', path, method, headers }: DispatchOptions): OutboundRequest {
  let read: Headers | undefined
  return {
    url: new URL(path, origin),
    method: method.toUpperCase(),
    // Most requests are counted by their origin alone.
    get headers() {
      read ??= headersOf(headers)
      return read
    },
  }
}

function headersOf(given: DispatchHeaders): Headers {
  const headers = new Headers()
  const add = (name: unknown, value: unknown) => {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) headers.append(String(name), String(one))
    }
  }
  if (Array.isArray(given) && !given.every(Array.isArray)) {
    for (let i = 0; i + 1 < given.length; i += 2) add(given[i], given[i + 1])
  } else if (given) {
    const entries = Symbol.iterator in given ? given : Object.entries(given)
    for (const [name, value] of entries as Iterable<[unknown, unknown]>) add(name, value)
  }
  return headers
}
