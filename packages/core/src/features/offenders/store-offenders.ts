import type { StoreOffenders } from '../../store/offenders.js'
import { offendersOf, type RefusalLog } from './refusal-log.js'

/** `store[OFFENDERS]` of the store that `where` made. */
export function storeOffenders(where: string, log: RefusalLog | undefined): StoreOffenders {
  return { note: log?.note, report: (query) => offendersOf(where, log, query) }
}
