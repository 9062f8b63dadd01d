import type { List, StoreListOptions, StoreLists } from '../../store/list.js'
import { invalidPolicy } from '../../util/errors.js'

/** @throws SluiceError `INVALID_POLICY` */
export function storeLists(where: string, { allow, deny }: StoreListOptions): StoreLists | undefined {
  if (allow === undefined && deny === undefined) return undefined
  return { allow: checkedLists(where, 'allow', allow), deny: checkedLists(where, 'deny', deny) }
}

/**
 * One list or several, as an array.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkedLists<Item>(
  where: string,
  field: string,
  given: Item | readonly Item[] | undefined,
): readonly Item[] {
  if (given === undefined) return []
  const items = Array.isArray(given) ? (given as readonly Item[]) : [given as Item]
  items.forEach((item, i) => {
    const name = Array.isArray(given) ? `${field}[${i}]` : field
    if (typeof item !== 'function' && !isList(item)) {
      invalidPolicy(where, name, 'a list such as ipRanges([…]), or a function', item)
    }
  })
  return Object.freeze([...items])
}

export function isList(item: unknown): item is List {
  return typeof item === 'object' && item !== null && typeof (item as List).match === 'function'
}
