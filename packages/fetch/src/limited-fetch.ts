import { durationMs, invalidPolicy } from '@sluice/core/internal'
import type { LimitedFetchOptions, OutboundRequest } from './options.js'
import { readQuota } from './quota/read-quota.js'
import { Turns } from './turns/turns.js'

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/**
 * A `fetch` whose requests wait for their turn, so that the service refuses none.
 *
 * It learns the limits from responses. When a response refuses, or says that nothing is left, all requests of its key wait until
 * the service wants to be asked again.
 *
 * @throws SluiceError `INVALID_POLICY`. The function that it returns rejects with `WAIT_EXCEEDED` if a wait would exceed `maxWait`
 * @example const api = limitedFetch(fetch, { limits: [perSecond(10)] })
 */
export function limitedFetch(
  fetch: typeof globalThis.fetch,
  options: LimitedFetchOptions = {},
): typeof globalThis.fetch {
  const { name = 'fetch', key, maxWait = '2m', priority = 0, fairBy, retry, signal: signalOfAll } = options
  const where = `policy "${name}"`
  if (typeof fetch !== 'function') invalidPolicy(where, 'fetch', 'a function, as that of Node', fetch)
  const maxWaitMs = maxWait === Number.POSITIVE_INFINITY ? maxWait : durationMs(where, 'maxWait', maxWait)
  const { attempts = 0, methods = SAFE_METHODS } = retry ?? {}
  const turns = new Turns(options)

  return async function limited(input, init) {
    const request = requestOf(input, init)
    const { origin } = request.url
    const ofTurn = {
      origin,
      maxWaitMs,
      signal: anyOf(signalOfAll, init?.signal ?? (input instanceof Request ? input.signal : undefined)),
      priority: typeof priority === 'function' ? priority(request) : priority,
      fairBy: fairBy?.(request),
    }
    const keyText = typeof key === 'function' ? key(request) : (key ?? origin)
    const mayRepeat =
      (methods.includes(request.method) || request.headers.has('idempotency-key')) && isReplayable(input, init)
    for (let attempt = 0; ; attempt++) {
      const turn = await turns.take(keyText, ofTurn)
      let response: Response
      try {
        response = await fetch(input, ofTurn.signal ? { ...init, signal: ofTurn.signal } : init)
      } catch (error) {
        await turns.answered(turn, undefined)
        throw error
      }
      const quota = readQuota(response)
      const kind = (await options.kindOf?.(response, quota)) ?? (quota.isRefusal ? 'refused' : 'accepted')
      await turns.answered(turn, kind === 'final' ? { ...quota, holdMs: 0 } : quota, kind === 'refused')
      if (kind !== 'refused' || attempt >= attempts || !mayRepeat) return response
      await response.body?.cancel()
    }
  }
}

function requestOf(input: string | URL | Request, init: RequestInit | undefined): OutboundRequest {
  const isRequest = input instanceof Request
  return {
    url: new URL(isRequest ? input.url : input),
    method: (init?.method ?? (isRequest ? input.method : 'GET')).toUpperCase(),
    headers: new Headers(init?.headers ?? (isRequest ? input.headers : undefined)),
  }
}

/** A stream is gone once it was sent. */
function isReplayable(input: string | URL | Request, init: RequestInit | undefined): boolean {
  const { body } = init ?? {}
  if (body === undefined || body === null) return !(input instanceof Request && input.body)
  return (
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    body instanceof FormData ||
    body instanceof Blob ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body)
  )
}

function anyOf(one: AbortSignal | undefined, other: AbortSignal | null | undefined): AbortSignal | undefined {
  return one && other ? AbortSignal.any([one, other]) : (one ?? other ?? undefined)
}
