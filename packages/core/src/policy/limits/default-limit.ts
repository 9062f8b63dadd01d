import { makeLimit, type RateOptions } from './common.js'
import type { Limit } from './limit.js'
import { slidingLog } from './sliding-log.js'
import { slidingWindow } from './sliding-window.js'

/** Up to here a plain `{ limit, window }` is an exact log; above, a strict window of segments, whose state does not grow. */
const LARGEST_DEFAULT_LOG = 1000

/** What a plain `{ limit, window }` means. `isRelaxed`: for counts that are exchanged, which logs are not. */
export function defaultLimit<Subject>(rate: RateOptions<Subject>, isRelaxed = false): Limit<Subject> {
  const log = slidingLog({ limit: 1, window: '1ms' })
  const segments = slidingWindow({ limit: 1, window: '1ms', edge: 'strict' })
  const choose = (limit: number) => (limit <= LARGEST_DEFAULT_LOG && !isRelaxed ? log : segments)
  const { algorithm } = choose(typeof rate.limit === 'number' ? rate.limit : 0)
  return makeLimit(algorithm, rate, [], (where, limit, windowMs) => choose(limit).resolve(where, limit, windowMs))
}
