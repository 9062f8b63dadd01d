/** What `Map` and `WeakMap` have in common. */
interface ByKey<Key, Value> {
  get(key: Key): Value | undefined
  set(key: Key, value: Value): unknown
}

/** The value of a key, which is made and kept where there is none. Node 20 has no `Map.prototype.getOrInsertComputed`. */
export function getOrInsert<Key, Value extends {}>(map: ByKey<Key, Value>, key: Key, make: (key: Key) => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const value = make(key)
  map.set(key, value)
  return value
}
