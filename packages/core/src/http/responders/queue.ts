import { checkPriority } from '../../policy/priority.js'
import type { HttpContext } from '../../request/context.js'
import { type Duration, durationMs } from '../../util/duration.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { answerWith, fallback } from './fallback.js'
import { type Refused, type Responder, withTraits } from './responder.js'
import { Seats } from './seats.js'

export interface QueueOptions<Request> {
  /** Longest wait: whoever would have to wait longer is refused as soon as that is known. @default '10s' */
  readonly maxWait?: Duration
  /** Most requests that wait for one key. @default 100 */
  readonly size?: number
  /** Most requests that wait at once, over all keys. @default 1000 */
  readonly maxConnections?: number
  /** A request's class, any finite number, or a function that says it, also later: higher goes first. @default the limiter's `priority` */
  readonly priority?: number | ((request: Request, context: HttpContext<Request>) => number | Promise<number>)
  /**
   * Waiting for this long raises a request by one class, so none starves: it is as if a request of
   * class 2 had come twice this time before one of class 0 that comes with it. @default '2s'
   */
  readonly ageEvery?: Duration
  /** What happens to those for whom there is no room, or not in time. @default reject({ status: 503 }) */
  readonly otherwise?: Responder<Request>
}

/**
 * Lets a request over the limit wait in line until the limit has room: higher priority first, then
 * first come first served. The line is this process's own; the limiter admits each request, so
 * processes that share a store share the limit exactly.
 *
 * @example rateLimit({ limit: 2, window: '1s', key: everyone(), respond: queue({ priority: (req) => (req.user?.pays ? 1 : 0) }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function queue<Request>(options: QueueOptions<Request> = {}): Responder<Request> {
  knownOptions('queue', options, ['maxWait', 'size', 'maxConnections', 'priority', 'ageEvery', 'otherwise'])
  const { maxWait = '10s', size = 100, maxConnections = 1000, priority, ageEvery = '2s' } = options
  const otherwise = fallback<Request>('queue', 'otherwise', options.otherwise, { status: 503 })
  const maxWaitMs = durationMs('queue', 'maxWait', maxWait)
  const ageEveryMs = durationMs('queue', 'ageEvery', ageEvery)
  wholeNumber('queue', 'size', size, 1)
  const seats = new Seats(wholeNumber('queue', 'maxConnections', maxConnections, 1))
  if (priority !== undefined && typeof priority !== 'function') checkPriority('queue', priority)

  async function queue(refused: Refused<Request>) {
    const { context, verdict } = refused
    if (verdict.reason !== 'limited' || !seats.take()) return answerWith(otherwise, refused, verdict)
    try {
      const own =
        typeof priority === 'function' ? await priority(context.request, context) : (priority ?? verdict.priority)
      const headStartMs = checkPriority('queue', own) * ageEveryMs
      const late = await refused.lineUp({ maxWaitMs, size, headStartMs })
      if (late === 'gone') return late
      return late.allowed ? { verdict: late, ending: 'proceed' as const } : await answerWith(otherwise, refused, late)
    } finally {
      seats.free()
    }
  }
  return withTraits(queue, otherwise, { linesUp: true })
}
