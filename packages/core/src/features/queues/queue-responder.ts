import { type FairOptions, fairClient } from '../../http/responders/fair-client.js'
import { otherwiseOfWaiting, waitOr } from '../../http/responders/fallback.js'
import { type Refused, type Responder, withTraits } from '../../http/responders/responder.js'
import { Semaphore } from '../../http/responders/semaphore.js'
import { ageEveryMsOf, checkPriority } from '../../policy/priority.js'
import type { HttpContext } from '../../request/context.js'
import { type Duration, waitOrNever } from '../../util/duration.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'

export interface QueueOptions<Request> extends FairOptions<Request> {
  /**
   * Maximum wait: a request that would wait longer is refused as soon as that is known.
   *
   * `Infinity`: until the client leaves.
   * @default '10s'
   */
  readonly maxWait?: Duration
  /**
   * Maximum of requests that wait for one key.
   *
   * In a full queue, a request of a client with fewer requests replaces the newest request of the client that has the
   * most, unless that is of a higher class; see `fairBy`.
   * @default 100
   */
  readonly size?: number
  /** Maximum of requests that wait at the same time, over all keys. @default 1000 */
  readonly maxConnections?: number
  /** A request's class, any finite number, or a function that returns it, which may be async. Higher goes first. @default the limiter's `priority` */
  readonly priority?: number | ((request: Request, context: HttpContext<Request>) => number | Promise<number>)
  /**
   * Waiting for this long raises a request by one class, so that none starves.
   *
   * A request of class 2 counts as if it had arrived twice this time earlier. `Infinity`: no request is raised, and a
   * lower class waits for as long as there are requests of a higher one.
   * @default '2s'
   */
  readonly ageEvery?: Duration
  /** Responds to requests that find the queue full, or would wait for too long; not one that queues. @default reject({ status: 503 }) */
  readonly otherwise?: Responder<Request>
}

/**
 * Queues a request over the limit until the limit has room: higher priority first, then clients in turn (see `fairBy`), then
 * first come, first served.
 *
 * Each process has its own queue. The limiter admits each request, so processes that share a store share the limit exactly.
 *
 * @example rateLimit({ limit: 2, window: '1s', key: everyone(), respond: queue({ priority: (req) => (req.user?.pays ? 1 : 0) }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function queue<Request>(options: QueueOptions<Request> = {}): Responder<Request> {
  knownOptions('queue', options, ['maxWait', 'size', 'maxConnections', 'priority', 'ageEvery', 'fairBy', 'otherwise'])
  const { maxWait = '10s', size = 100, maxConnections = 1000, priority } = options
  const otherwise = otherwiseOfWaiting<Request>('queue', options.otherwise, { status: 503 })
  const maxWaitMs = waitOrNever('queue', 'maxWait', maxWait)
  const ageEveryMs = ageEveryMsOf('queue', options.ageEvery)
  wholeNumber('queue', 'size', size, 1)
  const semaphore = new Semaphore(wholeNumber('queue', 'maxConnections', maxConnections, 1))
  const clientOf = fairClient('queue', options.fairBy)
  if (priority !== undefined && typeof priority !== 'function') checkPriority('queue', priority)

  function queue(refused: Refused<Request>) {
    const { context, verdict } = refused
    return waitOr(otherwise, semaphore, refused, async () => {
      const waitOptions =
        typeof priority === 'function' ? await priority(context.request, context) : (priority ?? verdict.priority)
      const headStartMs = checkPriority('queue', waitOptions) * ageEveryMs
      return { maxWaitMs, size, headStartMs, client: await clientOf(context, verdict) }
    })
  }
  return withTraits(queue, otherwise, { queues: true, clientOf })
}

knowFactories({ 'queue()': queue })
