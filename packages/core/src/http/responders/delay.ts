import { arePermits } from '../../store/units.js'
import { type Duration, durationMs, waitOrNever } from '../../util/duration.js'
import { neverWithout } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import type { LimitReport } from '../../verdict/limit-report.js'
import { type FairOptions, fairClient } from './fair-client.js'
import { otherwiseOfWaiting, waitOr } from './fallback.js'
import { type Refused, type Responder, withTraits } from './responder.js'
import { Semaphore } from './semaphore.js'

export interface DelayOptions<Request> extends FairOptions<Request> {
  /** Maximum delay: a request that would wait longer is refused at once. `Infinity`: no bound. @default '10s' */
  readonly max?: Duration
  /**
   * Units in use beyond which admitted requests are delayed as well, each by `by` for every unit beyond.
   *
   * With `from: 5` the fifth unit passes at once, the sixth waits for `by`, the seventh twice that. A whole number, 0
   * or more. At or above the capacity of the limit it has no effect.
   * @default no admitted request is delayed
   */
  readonly from?: number
  /** Delay for each unit beyond `from`. @default the time in which the limit restores one unit */
  readonly by?: Duration
  /** Maximum of requests delayed at the same time, over all keys; further ones are refused. @default 1000 */
  readonly maxConnections?: number
  /** Responds to requests that would wait for too long; a responder that queues is an error. @default reject() */
  readonly otherwise?: Responder<Request>
}

/**
 * Delays a request over the limit until the limit has room for it, and charges it then. Requests are served in order of
 * arrival, or clients in turn (see `fairBy`). The handler never runs more often than the limit admits.
 *
 * @example gcra({ limit: 2, window: '10s', respond: delay({ max: '20s' }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function delay<Request>(options: DelayOptions<Request> = {}): Responder<Request> {
  knownOptions('delay', options, ['max', 'from', 'by', 'maxConnections', 'fairBy', 'otherwise'])
  const { max = '10s', from, by, maxConnections = 1000 } = options
  const otherwise = otherwiseOfWaiting<Request>('delay', options.otherwise)
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

  function slowness({ unit, limit, windowMs, capacity, remaining }: LimitReport): number {
    if (from === undefined || arePermits(unit) || limit === 0) return 0
    const beyond = capacity - remaining - from
    return beyond > 0 ? Math.min(maxMs, Math.ceil(beyond * (byMs ?? windowMs / limit))) : 0
  }

  return withTraits(delay, otherwise, { queues: true, clientOf, ...(from !== undefined && { slowness }) })
}

knowFactories({ 'delay()': delay })
