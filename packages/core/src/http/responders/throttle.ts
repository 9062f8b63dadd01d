import type { ServerResponse } from 'node:http'
import type { HttpContext } from '../../request/context.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { isBarred } from '../../verdict/verdict.js'
import { whenOver } from '../response/when-over.js'
import { fallback } from './fallback.js'
import { type Responder, withTraits } from './responder.js'
import { Semaphore } from './semaphore.js'
import { slowDown } from './slow-stream.js'

export interface ThrottleOptions<Request> {
  /** Bytes of the body per second, 1 or more; per response. */
  readonly bytesPerSecond: number
  /** Bytes of each response that leave at full speed, 0 or more. @default 0 */
  readonly after?: number
  /** Maximum of responses slowed down at the same time, over all keys; further requests are refused. 1 or more. @default 1000 */
  readonly maxConnections?: number
  /** Responds to blocked, banned and denied requests, which never pass, and to those beyond `maxConnections`. @default reject() */
  readonly otherwise?: Responder<Request>
}

/**
 * Passes a request over the limit to its handler, uncharged, and slows its response down. Counts the bytes
 * that are written to the response, without those of headers and chunk marks.
 *
 * @example rateLimit({ limit: 3, window: '1h', respond: throttle({ bytesPerSecond: 64 * 1024, after: 1024 * 1024 }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function throttle<Request>(options: ThrottleOptions<Request>): Responder<Request> {
  knownOptions('throttle', options, ['bytesPerSecond', 'after', 'maxConnections', 'otherwise'])
  const bytesPerSecond = wholeNumber('throttle', 'bytesPerSecond', options.bytesPerSecond, 1)
  const after = wholeNumber('throttle', 'after', options.after === undefined ? 0 : options.after, 0)
  const { maxConnections = 1000 } = options
  const semaphore = new Semaphore(wholeNumber('throttle', 'maxConnections', maxConnections, 1))
  const otherwise = fallback<Request>('throttle', 'otherwise', options.otherwise)
  /** Slows a response down, unless too many are slowed already; returns whether it does. */
  const slowed = ({ response }: HttpContext<Request>, free: number) => {
    if (!semaphore.tryAcquire()) return false
    whenOver(response, () => semaphore.release())
    slowDown(response as unknown as ServerResponse, bytesPerSecond, free)
    return true
  }
  return withTraits<Request>(
    function throttle(refused) {
      const { context, verdict } = refused
      if (isBarred(verdict)) return otherwise(refused)
      // A HEAD response has no bytes to slow down.
      if (context.method === 'HEAD' || slowed(context, after)) return 'proceed'
      return otherwise(refused)
    },
    otherwise,
    { whenExhausted: (context, sent) => slowed(context, Math.max(0, after - sent)) },
  )
}

knowFactories({ 'throttle({ bytesPerSecond })': throttle })
