import { SluiceError } from '@sluice/core'
import { invalidPolicy, knownOptions, wholeNumber } from '@sluice/core/internal'
import { cancelBody, failureOf } from './bodies.js'
import type { LimitedFetchOptions, RetryOptions } from './options.js'
import { Sender } from './sender.js'
import { isReplayable, sentRequest, textIn, withSignal } from './sent-request.js'
import { turnsOf } from './turns/turns-of.js'

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
  if (typeof fetch !== 'function') invalidPolicy('limitedFetch', 'fetch', 'a function, as that of Node', fetch)
  const turns = turnsOf(options, ['kindOf', 'signal', 'retry'])
  const { name = 'fetch', retry, kindOf, signal: signalOfAll } = options
  const where = `policy "${name}"`
  if (signalOfAll !== undefined && !(signalOfAll instanceof AbortSignal)) {
    invalidPolicy(where, 'signal', 'an AbortSignal', signalOfAll)
  }
  const sender = new Sender(where, fetch, kindOf)
  const { attempts, methods } = retriesOf(where, retry)

  return async function limited(input, init) {
    const text = turns.readsBodies ? await textIn(input, init) : undefined
    const { url, method, headers, signal: own, body } = sentRequest(input, init)
    const signal = anyOf(signalOfAll, own)
    const mayRepeat = (methods.includes(method) || headers.has('idempotency-key')) && isReplayable(body)
    const failure = failureOf(body)
    const next = turns.of({ url, method, headers, body: text }, anyOf(signal, failure?.signal))
    const sent = signalOfAll && signal ? withSignal(init, signal) : init
    const left = (error: unknown) => {
      if (signal?.aborted) cancelBody(body)
      throw error
    }
    let turn = await next().catch(left).finally(failure?.ignore)
    for (let attempt = 0; ; attempt++) {
      const { response, isRefused } = await sender.send(turn, signal, input, sent)
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

/** The methods are in upper case, as those of requests. @throws SluiceError `INVALID_POLICY` */
function retriesOf(where: string, retry: RetryOptions | undefined): Required<RetryOptions> {
  if (retry === undefined) return { attempts: 0, methods: [] }
  const whereRetry = `${where}: retry`
  knownOptions(whereRetry, retry, ['attempts', 'methods'])
  const { attempts, methods = SAFE_METHODS } = retry
  wholeNumber(whereRetry, 'attempts', attempts, 1, 100)
  if (!Array.isArray(methods) || !methods.every((method) => typeof method === 'string')) {
    invalidPolicy(whereRetry, 'methods', 'an array of methods, such as ["GET", "POST"]', methods)
  }
  return { attempts, methods: methods.map((method: string) => method.toUpperCase()) }
}

function anyOf(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one && other ? AbortSignal.any([one, other]) : (one ?? other)
}
