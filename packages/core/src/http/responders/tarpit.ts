import { type Duration, waitMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { propertyOf } from '../../util/property-of.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { waitWithClient } from '../response/wait.js'
import { fallback } from './fallback.js'
import { type Refused, type Responder, withTraits } from './responder.js'
import { Semaphore } from './semaphore.js'

export interface TarpitOptions<Request> {
  /** Duration for which the connection is held before the response. @default '10s' */
  readonly for?: Duration
  /**
   * Maximum of connections held at the same time, over all keys; further requests get their response at once. 0 or more.
   * @default 100
   */
  readonly maxConnections?: number
  /** Responds after the wait. @default reject() */
  readonly answer?: Responder<Request>
}

/**
 * Makes a refused client wait before it is refused, so that a flood costs it time. Held
 * connections are open connections. A server that closes waits for them as for any other request,
 * up to `for`, or ends them with `closeAllConnections()`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function tarpit<Request>(options: TarpitOptions<Request> = {}): Responder<Request> {
  knownOptions('tarpit', options, ['for', 'maxConnections', 'answer'])
  const { for: hold = '10s', maxConnections = 100 } = options
  const forMs = waitMs('tarpit', 'for', hold)
  const semaphore = new Semaphore(wholeNumber('tarpit', 'maxConnections', maxConnections, 0))
  const answer = fallback<Request>('tarpit', 'answer', options.answer)
  if (propertyOf(answer, 'queues')) invalidPolicy('tarpit', 'answer', 'a responder that does not queue', answer)

  async function tarpit(refused: Refused<Request>) {
    if (!semaphore.tryAcquire()) return answer(refused)
    let stayed: boolean
    try {
      stayed = await waitWithClient(refused.context.response, forMs)
    } finally {
      semaphore.release()
    }
    return stayed ? answer(refused) : 'gone'
  }
  return withTraits(tarpit, answer)
}

knowFactories({ 'tarpit()': tarpit })
