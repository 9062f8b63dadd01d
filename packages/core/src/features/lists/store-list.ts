import { LISTS, type List, type ListKeeper } from '../../store/list.js'
import { invalidPolicy } from '../../util/errors.js'
import { isPropertyOf } from '../../util/property-of.js'
import { checkedListName } from './given-list-entries.js'

/**
 * The list that a limiter's store holds under a name: changed at any time by `store.list(name)`, in any process. An entry is in
 * force at once in the process that adds it, and within a second in others; it holds while Redis is away.
 *
 * Decisions wait until the store has read its lists for the first time. Where Redis is away by then, the list matches nothing
 * until it is there. `ready()` resolves once the stores of all limiters that have the list have read it.
 *
 * @example rateLimit({ store, limit: 100, window: '1m', deny: storeList('abusers') })
 * @throws SluiceError `INVALID_POLICY`; also where a limiter is made, if its store keeps no lists
 */
export function storeList(name: string): List {
  checkedListName('storeList', name)
  const lists = new Set<List>()
  return {
    name,
    kinds: [],
    version: 1,
    match: () => undefined,
    async ready() {
      await Promise.all([...lists].map((list) => list.ready()))
    },
    async close() {},
    forStore(where: string, store: ListKeeper): List {
      const kept = store[LISTS]
      const list =
        (kept && isPropertyOf(kept, 'list') ? kept.list?.(name) : undefined) ??
        invalidPolicy(where, 'store', `one that keeps lists, by store[LISTS], as storeList("${name}") is used`, store)
      lists.add(list)
      return list
    },
  }
}
