import { wrongPolicy } from '../util/errors.js'
import { propertyOf } from '../util/property-of.js'
import { BANS } from './bans.js'
import { CHANGES } from './changes.js'
import { LISTS } from './list.js'
import { OFFENDERS } from './offenders.js'
import { KEPT_CHARGES, type Store, WAITERS } from './store.js'

/** A part of stores, the name of its symbol, and earlier members of stores with their names in the part. */
type Part = readonly [
  of: (store: Store) => object | undefined,
  symbol: string,
  members: Readonly<Record<string, string>>,
]

const PARTS: readonly Part[] = [
  [
    (store) => store[BANS],
    'BANS',
    {
      block: 'block',
      unblock: 'unblock',
      strike: 'strike',
      enforceBansOfEveryPolicy: 'enforceBansOfEveryPolicy',
      blocks: 'blocks',
    },
  ],
  [(store) => store[KEPT_CHARGES], 'KEPT_CHARGES', { keptCharge: 'find' }],
  [(store) => store[LISTS], 'LISTS', { lists: 'given', list: 'list' }],
  [(store) => store[OFFENDERS], 'OFFENDERS', { noteRefusal: 'note', offenders: 'report' }],
  [(store) => store[CHANGES], 'CHANGES', { changes: 'record' }],
  [(store) => store[WAITERS], 'WAITERS', { reportWaiting: 'report', mayHavePermits: 'mayHavePermits' }],
]

/**
 * Rejects a store that has, as its own member, what is read from a part of it: a method that nothing calls is a limit silently
 * absent.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function refuseOldMembers(where: string, store: Store): void {
  for (const [of, symbol, members] of PARTS) {
    const part = of(store)
    for (const [old, member] of Object.entries(members)) {
      if (propertyOf(store, old as keyof Store & string) === undefined || (part && member in part)) continue
      wrongPolicy(
        `${where}: store: ${old}: expected it as ${member} of store[${symbol}], got it as a member of the store: write ` +
          `[${symbol}]: { ${member}, … }, with the symbol from @sluice/core/store`,
      )
    }
  }
}
