import { type Duration, waitMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import type { Resolution } from './limit.js'

/** For limits whose windows end at one instant for all keys. */
export interface SpreadOptions {
  /**
   * Spreads the times at which clients may come back over so long after the end of the window, each by a hash of its
   * identity: a duration, at most the window. Later than they must, never too early. See docs/choosing-an-algorithm.md.
   * @default none
   */
  readonly spread?: Duration
}

/** The same resolution, with the spread of a limit beside it. */
export type Spread = (where: string, resolution: Resolution) => Resolution

/** @throws SluiceError `INVALID_POLICY` */
export function spreadOf(where: string, spread: Duration | undefined): Spread {
  if (spread === undefined) return (_, resolution) => resolution
  const spreadMs = waitMs(where, 'spread', spread)
  return (where, resolution) => {
    const { report } = resolution
    if (spreadMs > report.windowMs) {
      invalidPolicy(where, 'spread', `at most the window of ${report.windowMs} ms`, spreadMs)
    }
    return { ...resolution, report: { ...report, spreadMs } }
  }
}
