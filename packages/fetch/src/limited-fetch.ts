import { SluiceError } from '@sluice/core'
import { invalidPolicy, knownOptions, optionalFunction, wholeNumber } from '@sluice/core/internal'
import { cancelBody } from './bodies.js'
import type { LimitedFetchOptions, ResponseKind } from './options.js'
import type { Quota } from './quota/quota-types.js'
import { readQuota } from './quota/read-quota.js'
import { isRequest, sentRequest, withSignal } from './sent-request.js'
import { type MeteredTurn, turnsOf } from './turns/turns-of.js'
import { metered } from './usage/metered-response.js'
import { textOf } from './usage/text-of.js'
import { warnOnce } from './warn-once.js'

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']
const NO_TURN = ['WAIT_EXCEEDED', 'CIRCUIT_OPEN']

/**
 * A `fetch` whose requests wait for their turn, so that the service refuses none.
 *
 * It learns the limits from responses. When a response refuses, or says that nothing is left, all requests of its key wait until
 * the service wants to be asked again.
 *
 * @throws SluiceError `INVALID_POLICY`. The function that it returns rejects with `WAIT_EXCEEDED` if a wait would exceed `maxWait`,
 * and with `CIRCUIT_OPEN` while the service fails
 * @example const api = limitedFetch(fetch, { limits: [perSecond(10)] })
 */
export function limitedFetch(
  fetch: typeof globalThis.fetch,
  options: LimitedFetchOptions = {},
): typeof globalThis.fetch {
  const { name = 'fetch', retry, kindOf, signal: signalOfAll } = options
  const where = `policy "${name}"`
  if (typeof fetch !== 'function') invalidPolicy(where, 'fetch', 'a function, as that of Node', fetch)
  const turns = turnsOf(options, ['kindOf', 'signal', 'retry'])
  optionalFunction(where, 'kindOf', kindOf)
  if (signalOfAll !== undefined && !(signalOfAll instanceof AbortSignal)) {
    invalidPolicy(where, 'signal', 'an AbortSignal', signalOfAll)
  }
  if (retry !== undefined) {
    knownOptions(`${where}: retry`, retry, ['attempts', 'methods'])
    wholeNumber(`${where}: retry`, 'attempts', retry.attempts, 1, 100)
  }
  const warn = warnOnce(where, 'kindOf')
  const { attempts = 0, methods = SAFE_METHODS } = retry ?? {}

  /** Undefined where status and headers tell the kind. A `kindOf` that fails loses no response. */
  async function kindIn(
    response: Response,
    quota: Quota,
    signal: AbortSignal | undefined,
  ): Promise<ResponseKind | undefined> {
    try {
      return await kindOf?.(response, quota)
    } catch (error) {
      // The body of an aborted request cannot be read.
      if (!signal?.aborted) warn(error)
      return undefined
    }
  }

  /** Sends a request that has its turn. */
  async function send(turn: MeteredTurn, signal: AbortSignal | undefined, ...[input, init]: Parameters<typeof fetch>) {
    let quota: Quota | undefined
    let kind: ResponseKind = 'accepted'
    let status: number | undefined
    try {
      const response = await fetch(input, init)
      status = response.status
      quota = readQuota(response)
      kind = quota.isRefusal ? 'refused' : 'accepted'
      kind = (await kindIn(response, quota, signal)) ?? kind
      return { response: metered(response, turn.meter(response)), isRefused: kind === 'refused' }
    } finally {
      turn.ended(status)
      const holds = quota?.isRefusal && kind !== 'refused' ? { ...quota, holdMs: 0 } : quota
      await turn.answered(holds, kind === 'refused')
    }
  }

  return async function limited(input, init) {
    const { url, method, headers, signal: own, body } = sentRequest(input, init)
    const signal = anyOf(signalOfAll, own)
    const mayRepeat = (methods.includes(method) || headers.has('idempotency-key')) && isReplayable(body)
    const text = turns.readsBodies ? await textIn(input, init) : undefined
    const next = turns.of({ url, method, headers, body: text }, signal)
    const sent = signalOfAll && signal ? withSignal(init, signal) : init
    let turn = await next()
    for (let attempt = 0; ; attempt++) {
      const { response, isRefused } = await send(turn, signal, input, sent)
      if (!isRefused || attempt >= attempts || !mayRepeat) return response
      try {
        turn = await next()
      } catch (error) {
        if (error instanceof SluiceError && NO_TURN.includes(error.code)) return response
        cancelBody(response.body)
        throw error
      }
      cancelBody(response.body)
    }
  }
}

/** The body of a request as text; undefined for forms and streams. */
async function textIn(input: string | URL | Request, init: RequestInit | undefined): Promise<string | undefined> {
  const source = init?.body ? init : input
  if (!isRequest(source)) return textOf(init?.body)
  // Fetch itself says that it was used.
  return source.body && !source.bodyUsed ? source.clone().text() : undefined
}

/** A stream is gone once it was sent. */
function isReplayable(body: unknown): boolean {
  return (
    body === undefined ||
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    body instanceof FormData ||
    body instanceof Blob ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body)
  )
}

function anyOf(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one && other ? AbortSignal.any([one, other]) : (one ?? other)
}
