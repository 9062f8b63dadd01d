import { hasPermits } from '../../store/cell-kinds.js'
import { type Duration, durationMs, waitOrNever } from '../../util/duration.js'
import { neverWithout } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import type { LimitReport } from '../../verdict/limit-report.js'
import { type FairOptions, fairClient } from './fair-client.js'
import { fallback, waitOr } from './fallback.js'
import { type Refused, type Responder, withTraits } from './responder.js'
import { Semaphore } from './semaphore.js'

export interface DelayOptions<Request> extends FairOptions<Request> {
  /** Longest delay: a request that would wait longer is refused at once. `Infinity`: no bound. @default '10s' */
  readonly max?: Duration
  /**
   * Units of the limit in use from which on admitted requests are slowed down as well, each by `by`
   * for every unit beyond: with `from: 5` the fifth unit passes at once, the sixth waits for `by`, the
   * seventh twice that. Whole, 0 or more; at or above what the limit can hold it changes nothing.
   * @default none are
   */
  readonly from?: number
  /** Beside `from`. @default the time in which the limit restores one unit */
  readonly by?: Duration
  /** Most requests delayed at once, over all keys; beyond, they are refused. @default 1000 */
  readonly maxConnections?: number
  /** What responds to requests that would wait for too long. @default reject() */
  readonly otherwise?: Responder<Request>
}

/**
 * Delays a request over the limit until the limit has room for it, in order of arrival, or
 * clients in turn, see `fairBy`, and charges it then.
 * The handler never runs more often than the limit admits.
 *
 * @example gcra({ limit: 2, window: '10s', respond: delay({ max: '20s' }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function delay<Request>(options: DelayOptions<Request> = {}): Responder<Request> {
  knownOptions('delay', options, ['max', 'from', 'by', 'maxConnections', 'fairBy', 'otherwise'])
  const { max = '10s', from, by, maxConnections = 1000 } = options
  const otherwise = fallback<Request>('delay', 'otherwise', options.otherwise)
  const maxMs = waitOrNever('delay', 'max', max)
  if (by !== undefined && from === undefined) neverWithout('delay', 'by', 'from', by)
  if (from !== undefined) wholeNumber('delay', 'from', from, 0)
  const byMs = by === undefined ? undefined : durationMs('delay', 'by', by)
  const semaphore = new Semaphore(wholeNumber('delay', 'maxConnections', maxConnections, 1))
  const clientOf = fairClient('delay', options.fairBy)

  function delay(refused: Refused<Request>) {
    return waitOr(otherwise, semaphore, refused, async () => ({
      maxWaitMs: maxMs,
      client: await clientOf(refused.context, refused.verdict),
    }))
  }

  function slowness({ algorithm, limit, windowMs, capacity, remaining }: LimitReport): number {
    if (from === undefined || hasPermits(algorithm) || limit === 0) return 0
    const beyond = capacity - remaining - from
    return beyond > 0 ? Math.min(maxMs, Math.ceil(beyond * (byMs ?? windowMs / limit))) : 0
  }

  return withTraits(delay, otherwise, { queues: true, clientOf, ...(from !== undefined && { slowness }) })
}

knowFactories({ 'delay()': delay })
