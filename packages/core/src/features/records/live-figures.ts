import type { FiguresReporting } from '../../store/figures-reporting.js'
import { startReporting } from './figures.js'

/**
 * Reports figures of this process to Redis, for a console: decisions, refusals, round trips.
 *
 * Each second, the process writes the counts of all its limiters, whichever store they use. One store of a process is
 * enough. Ends with the store.
 *
 * @example const store = redisStore(client, { report: liveFigures() })
 */
export function liveFigures(): FiguresReporting {
  return { start: startReporting }
}
