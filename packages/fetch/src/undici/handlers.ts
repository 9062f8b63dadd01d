import type { MeteredOutboundTurn } from '../create-turns.js'
import type { HeadersLike } from '../quota/headers.js'
import type { BodyMeter } from '../usage/costs.js'
import type { Controller, Handler } from './dispatcher.js'
import type { WaitingController } from './waiting-controller.js'

/** Takes in the response to a request, on its way to the handler. */
class Intake {
  readonly #turn: MeteredOutboundTurn
  #meter: BodyMeter | undefined

  constructor(turn: MeteredOutboundTurn) {
    this.#turn = turn
  }

  begin(status: number, headers: HeadersLike): void {
    // Informational responses precede the one that counts. That of an upgrade is the only one.
    if (status < 200 && status !== 101) return
    void this.#turn.answered({ status, headers })
    this.#meter = this.#turn.meter({ status, headers })
  }

  add(chunk: unknown): void {
    this.#meter?.add(chunk as Uint8Array)
  }

  end(): void {
    this.#meter?.end(true)
  }

  fail(): void {
    this.#turn.failed()
    this.#meter?.end(false)
  }
}

type Callback = (...args: unknown[]) => unknown

/** Calls a method of a handler, if it has that one. */
function pass(handler: Handler, name: string, ...args: unknown[]): unknown {
  const method = handler[name]
  return typeof method === 'function' ? (method as Callback).apply(handler, args) : undefined
}

/** The methods that handlers of every version may have. */
const OF_BODIES = ['onBodySent', 'onRequestSent', 'onResponseStarted']

function passing(handler: Handler, names: readonly string[]): Record<string, Callback> {
  return Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => pass(handler, name, ...args)]))
}

/** The handler of a request that is sent, in the form of the given one, which has begun already. */
export function handlerFor(handler: Handler, controller: WaitingController, turn: MeteredOutboundTurn): Handler {
  const intake = new Intake(turn)
  return isOfController(handler) ? withController(handler, controller, intake) : withAbort(handler, controller, intake)
}

/** Whether a handler has the form of undici from 7 on. */
export function isOfController(handler: Handler): boolean {
  return typeof handler.onRequestStart === 'function'
}

/** Up to undici 6: raw headers, and a function that aborts. */
function withAbort(handler: Handler, controller: WaitingController, intake: Intake): Handler {
  return {
    ...passing(handler, OF_BODIES),
    onConnect(abort) {
      controller.sentBy(abortable(abort))
    },
    onUpgrade(status: number, headers: readonly Uint8Array[], ...rest: unknown[]) {
      intake.begin(status, namedHeaders(headers))
      return pass(handler, 'onUpgrade', status, headers, ...rest)
    },
    onHeaders(status: number, headers: readonly Uint8Array[], ...rest: unknown[]) {
      intake.begin(status, namedHeaders(headers))
      return pass(handler, 'onHeaders', status, headers, ...rest)
    },
    onData(chunk: unknown) {
      intake.add(chunk)
      return pass(handler, 'onData', chunk)
    },
    onComplete(trailers: unknown) {
      intake.end()
      return pass(handler, 'onComplete', trailers)
    },
    onError(error) {
      intake.fail()
      pass(handler, 'onError', error)
    },
  }
}

/** From undici 7 on. The given handler sees one controller. */
function withController(handler: Handler, controller: WaitingController, intake: Intake): Handler {
  return {
    ...passing(handler, OF_BODIES),
    onRequestStart(sent, context) {
      controller.sentBy(sent)
      // It has begun without a context, which only other interceptors give.
      if (context) handler.onRequestStart?.(controller, context)
    },
    onRequestUpgrade(_: Controller, status: number, headers: HeadersLike, ...rest: unknown[]) {
      intake.begin(status, headers)
      return pass(handler, 'onRequestUpgrade', controller, status, headers, ...rest)
    },
    onResponseStart(_: Controller, status: number, headers: HeadersLike, ...rest: unknown[]) {
      intake.begin(status, headers)
      return pass(handler, 'onResponseStart', controller, status, headers, ...rest)
    },
    onResponseData(_: Controller, chunk: unknown) {
      intake.add(chunk)
      return pass(handler, 'onResponseData', controller, chunk)
    },
    onResponseEnd(_: Controller, trailers: unknown) {
      intake.end()
      return pass(handler, 'onResponseEnd', controller, trailers)
    },
    onResponseError(_, error) {
      intake.fail()
      pass(handler, 'onResponseError', controller, error)
    },
  }
}

/** A controller for a version that has only a function. */
function abortable(abort: (reason?: Error) => void): Controller {
  return { aborted: false, paused: false, reason: null, abort, pause() {}, resume() {} }
}

/** Raw headers have names and values in turns. */
function namedHeaders(raw: readonly Uint8Array[]): Record<string, string[]> {
  const named: Record<string, string[]> = Object.create(null)
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = latin1(raw[i]).toLowerCase()
    const values = raw[i + 1]
    named[name] = [...(named[name] ?? []), ...(Array.isArray(values) ? values.map(latin1) : [latin1(values)])]
  }
  return named
}

function latin1(bytes: unknown): string {
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('latin1') : String(bytes)
}
