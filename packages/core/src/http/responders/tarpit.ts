import { type Duration, waitMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { waitWithClient } from '../response/wait.js'
import { fallback } from './fallback.js'
import { type Refused, type Responder, withTraits } from './responder.js'
import { Semaphore } from './semaphore.js'

export interface TarpitOptions<Request> {
  /** How long to hold the connection before it is answered. @default '10s' */
  readonly for?: Duration
  /** Most connections held at once, over all keys; further requests are answered at once. 0 or more. @default 100 */
  readonly maxConnections?: number
  /** What answers in the end. @default reject() */
  readonly answer?: Responder<Request>
}

/**
 * Keeps a refused client waiting before it is refused, so that a flood costs it time. Held
 * connections are open connections: a server that closes waits for them like for any other request,
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
  if (answer.queues) invalidPolicy('tarpit', 'answer', 'a responder that does not queue', answer)

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
