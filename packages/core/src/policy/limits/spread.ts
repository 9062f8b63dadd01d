import { type Duration, waitMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import type { Limit } from './limit.js'

/** For limits whose windows end at one instant for all keys. */
export interface SpreadOptions {
  /**
   * Spreads the times at which clients may come back over this duration after the end of the window.
   *
   * A hash of the identity determines the delay of each client. At most the window. Later than they must, never too
   * early. See docs/choosing-an-algorithm.md.
   * @default none
   */
  readonly spread?: Duration
}

/**
 * The same limit, with the spread of its times beside it.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function spreadOver(where: string, spread: Duration | undefined, resolve: Limit['resolve']): Limit['resolve'] {
  if (spread === undefined) return resolve
  const spreadMs = waitMs(where, 'spread', spread)
  return (where, limit, windowMs, firstDay) => {
    const resolution = resolve(where, limit, windowMs, firstDay)
    if (spreadMs > windowMs) invalidPolicy(where, 'spread', `at most the window of ${windowMs} ms`, spreadMs)
    return { ...resolution, report: { ...resolution.report, spreadMs } }
  }
}
